"""The page of capabilities, of which the last section is generated."""

from __future__ import annotations

import re
from pathlib import Path

import hookloop.hooks
from page_parts.docstrings import first_line

BEYOND = "## Beyond the five systems\n"
INTRO = """ Hooks with no counterpart in the five systems. This list is generated: a new hook
appears in it unless a row above names it.
"""


def page(path: Path) -> str:
    """Return the page with its last section rewritten.

    The table is written by hand, and tests/test_capabilities.py checks it.
    """
    table = path.read_text(encoding="utf-8").partition(BEYOND)[0]
    beyond = [
        f"- [`{name}`](hooks.md#{name.lower()}): {first_line(getattr(hookloop.hooks, name))}"
        for name in sorted(hookloop.hooks.__all__)
        if not re.search(rf"`{name}\b", table)
    ]
    return f"{table}{BEYOND}{INTRO}\n" + "\n".join(beyond) + "\n"
