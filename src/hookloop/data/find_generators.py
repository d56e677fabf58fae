"""Find random generators that data draws from and no checkpoint holds, without running any code.

They may be attributes of the data set or of a transform in it, variables in the closure of a
function, or variables of a module that the methods of the data set use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType

from hookloop.data.attribute_state import GENERATOR_TYPES

SOME = 100
"""How many parts of a list or dict are examined."""

MOST = 20_000
"""How many parts are examined in total."""

PLAIN = (int, float, bool, str, bytes, type(None))
"""Types of values that cannot hold a generator."""

DEPTH = 4
"""How far attributes of attributes are followed."""

LIBRARIES = ("torch", "numpy", "builtins", "functools", "random", "collections")
"""Packages whose classes are not examined: they draw from generators that they are given."""


def find_generators(holder: object, depth: int = DEPTH) -> Iterator[tuple[str, object]]:
    """Yield the generators that an object draws from, each with its path, the nearest first."""
    # Breadth first and bounded: nested lists of numbers would take minutes, and generators are
    # near the top.
    queue = deque([("", holder, depth)])
    examined = 0
    while queue and examined < MOST:
        path, part, levels = queue.popleft()
        for name, value in _parts_of(part):
            examined += 1
            if isinstance(value, GENERATOR_TYPES):
                yield f"{path}{name}", value
            elif levels and type(value) not in PLAIN:
                queue.append((f"{path}{name}.", value, levels - 1))


def _parts_of(holder: object) -> Iterator[tuple[str, object]]:
    """Yield what an object holds or its code uses, by name."""
    if isinstance(holder, list | tuple):
        yield from ((str(index), part) for index, part in enumerate(holder[:SOME]))
    elif isinstance(holder, dict):
        yield from ((str(key), part) for key, part in list(holder.items())[:SOME])
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
        elif isinstance(value, GENERATOR_TYPES):
            yield name, value


def _used_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the variables that a function takes from outside: its closure and its module."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # The variable has no value yet.
            continue
    # Only generators among the globals: to follow everything would lead through whole modules.
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, GENERATOR_TYPES):
            yield name, value
