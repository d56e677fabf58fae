"""``mmengine.config``: options of a command line, and the mark of a config's bases."""

from __future__ import annotations

import ast
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class DictAction(Action):
    """Collects ``--cfg-options a.b=1 c=[1,2]`` in a dict."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for pair in values or ():
            key, _, value = str(pair).partition("=")
            options[key] = _parse(value)
        setattr(namespace, self.dest, options)


def _parse(text: str) -> object:
    """Read a number, text, list or tuple; ``1,2`` is a list."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if "," in text and text[0] not in "[(":
            return [_parse(part) for part in text.split(",")]
        return text


@contextmanager
def read_base() -> Iterator[None]:
    """Mark the bases of a config in Python; `Config.fromfile` reads them."""
    yield
