"""Read Google docstrings: the duty, the named sections, the meaning of each parameter."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent


def sections(documented: object) -> dict[str, str]:
    """Split a docstring into its duty and its named sections."""
    parts = re.split(r"^(\w+):\n", inspect.getdoc(documented) or "", flags=re.MULTILINE)
    return {"duty": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def meanings(documented: object) -> dict[str, str]:
    """Return what the section on the arguments says of each, in one line."""
    described = dedent(sections(documented).get("Args", ""))
    entries = re.split(r"^(\**\w+): ", described, flags=re.MULTILINE)[1:]
    return {
        name: in_markdown(" ".join(text.split())).replace("|", "\\|")
        for name, text in zip(entries[::2], entries[1::2], strict=True)
    }


def in_markdown(text: str) -> str:
    """Write code as Markdown writes it."""
    return text.replace("``", "`")


def first_line(documented: object) -> str:
    """Return the duty in one line."""
    return in_markdown((inspect.getdoc(documented) or "").partition("\n")[0])
