"""Random generators that data draws from and no checkpoint holds, found without running anything.

They may be attributes, of the data set or of a transform in it, in the closure of a function, or
variables of the module that the data set's methods use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType

from hookloop.data.kept import GENERATORS

SOME = 100
"""Parts of a list or dict that are looked at."""

MOST = 20_000
"""Parts that are looked at in all."""

PLAIN = (int, float, bool, str, bytes, type(None))
"""Values that hold nothing."""

DEPTH = 4
"""How far attributes of attributes are followed."""

LIBRARIES = ("torch", "numpy", "builtins", "functools", "random", "collections")
"""Whose own code draws from generators that it was given."""


def generators_in(holder: object, depth: int = DEPTH) -> Iterator[tuple[str, object]]:
    """Yield the generators that an object draws from, each with the way to it, the nearest first.

    At most `MOST` parts are looked at: nested lists of numbers would take minutes.
    """
    waiting = deque([("", holder, depth)])
    looks = 0
    while waiting and looks < MOST:
        path, one, left = waiting.popleft()
        for name, value in _parts_of(one):
            looks += 1
            if isinstance(value, GENERATORS):
                yield f"{path}{name}", value
            elif left and type(value) not in PLAIN:
                waiting.append((f"{path}{name}.", value, left - 1))


def _parts_of(holder: object) -> Iterator[tuple[str, object]]:
    """Yield what an object holds or its code uses, by name."""
    if isinstance(holder, list | tuple):
        yield from ((str(at), one) for at, one in enumerate(holder[:SOME]))
    elif isinstance(holder, dict):
        yield from ((str(key), one) for key, one in list(holder.items())[:SOME])
    elif isinstance(holder, FunctionType):
        yield from _used_by(holder)
    elif isinstance(holder, MethodType):
        yield "__self__", holder.__self__
    elif isinstance(holder, partial):
        yield from (("func", holder.func), ("args", holder.args), ("keywords", holder.keywords))
    elif not isinstance(holder, type):
        yield from list(getattr(holder, "__dict__", {}).items())
        for kind in type(holder).__mro__:
            if not kind.__module__.startswith(LIBRARIES):
                yield from _used_by_class(kind)


def _used_by_class(kind: type) -> Iterator[tuple[str, object]]:
    for name, value in vars(kind).items():
        if isinstance(value, FunctionType):
            yield from _used_by(value)
        elif isinstance(value, GENERATORS):
            yield name, value


def _used_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the generators among the variables that a function does not make itself."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # It has no value yet.
            continue
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, GENERATORS):
            yield name, value
