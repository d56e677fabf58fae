"""An extension of griffe, which reads the sources for the site: doctests become blocks of code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SESSION = re.compile(r"^( *)>>> .*\n?(?:^ *\S.*\n?)*", flags=re.MULTILINE)


def fenced(text: str) -> str:
    """Put a fence around each doctest, so that Markdown does not read it as prose."""

    def fence(match: re.Match[str]) -> str:
        indent = match[1]
        return f"{indent}```pycon\n{match[0].rstrip()}\n{indent}```\n"

    return SESSION.sub(fence, text)


class Fences(Extension):
    """Rewrites each docstring when it is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401 - as griffe calls it
        """Rewrite the docstring of a class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
