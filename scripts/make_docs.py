"""Write the generated pages of docs/ from the code: ``make pages``.

A test holds the committed pages against what this writes, so they cannot drift.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).parent))  # A test loads this file by its path.

from page_parts import commands, config_keys, hooks, notebook, points, python_names, traced

DOCS = Path(__file__).parent.parent / "docs"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every generated page with its content."""
    yield DOCS / "mount-points.md", points.page()
    yield DOCS / "hooks.md", hooks.page()
    yield DOCS / "concepts" / "from-request-to-return.md", traced.page()
    yield DOCS / "reference" / "commands.md", commands.page()
    yield DOCS / "reference" / "config-keys.md", config_keys.page()
    yield notebook.SCRIPT.with_suffix(".ipynb"), notebook.content()
    for place, content in python_names.pages(PurePosixPath("reference/python")):
        yield DOCS / place, content


if __name__ == "__main__":
    for path, content in pages():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
