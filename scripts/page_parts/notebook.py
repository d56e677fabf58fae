"""The notebook of the example ``two_minutes``: the cells of its script."""

from __future__ import annotations

import json
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "two_minutes" / "two_minutes.py"
MARK = "# %%"


def content() -> str:
    """Return the script as a notebook; a line that begins with ``# %%`` begins a cell."""
    cells: list[dict[str, object]] = []
    for part in SCRIPT.read_text(encoding="utf-8").split(f"\n{MARK}"):
        kind, _, text = part.removeprefix(MARK).partition("\n")
        lines = text.strip("\n").splitlines()
        is_text = kind.strip() == "[markdown]"
        if is_text:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines if line]
        source = "\n".join(lines).splitlines(keepends=True)
        # Each with an id of its own, as the format asks for, and the same one every time.
        cell: dict[str, object] = {"id": f"cell-{len(cells) + 1}", "metadata": {}, "source": source}
        if is_text:
            cells.append({"cell_type": "markdown", **cell})
        else:
            cells.append({"cell_type": "code", **cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
