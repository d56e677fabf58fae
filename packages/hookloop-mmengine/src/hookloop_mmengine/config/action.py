"""``mmengine.config``: command-line options, and the marker of a config's bases."""

from __future__ import annotations

import ast
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class DictAction(Action):
    """Collect ``--cfg-options a.b=1 c=[1,2]`` in a dict."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for pair in values or ():
            key, equals, value = str(pair).partition("=")
            if not equals:
                parser.error(f"{option_string}: '{pair}' is not of the form key=value")
            options[key] = _parse(value)
        setattr(namespace, self.dest, options)


def _parse(text: str) -> object:
    """Read a number, text, list or tuple; ``1,2`` is a list.

    >>> _parse("1,2"), _parse("[(a,1),b]"), _parse("1e-3")
    ([1, 2], [('a', 1), 'b'], 0.001)
    """
    words = {"true": True, "false": False, "none": None}
    text = text.strip()
    if text.lower() in words:
        return words[text.lower()]
    # Not literal_eval for lists: shells drop quotes, so the entries may be bare words.
    if text.startswith("(") and text.endswith(")"):
        return tuple(_parse(part) for part in _split(text[1:-1]))
    if text.startswith("[") and text.endswith("]"):
        return [_parse(part) for part in _split(text[1:-1])]
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = text
    # Python reads 1,2 as a tuple; MMEngine makes tuples of (1,2) only.
    if isinstance(found, tuple) or (found == text and "," in text):
        return [_parse(part) for part in _split(text)]
    return found


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    # An empty list has no entry, and a trailing comma adds none.
    return parts if parts[-1].strip() else parts[:-1]


@contextmanager
def read_base() -> Iterator[None]:
    """Mark the bases of a config in Python.

    Nothing happens here: `Config.fromfile` finds the block in the source and reads the bases.
    """
    yield
