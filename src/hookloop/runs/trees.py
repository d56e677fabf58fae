"""List what differs between two trees of values, such as configs, environments or checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

LONGEST = 200
"""Characters of a value that are shown."""


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()
"""What stands for a value that one of two trees does not have."""


class Difference(NamedTuple):
    """One value that differs; what is missing on a side is `NOTHING`."""

    path: str
    old: object
    new: object

    def __str__(self) -> str:
        return f"{self.path}: {_show(self.old)} -> {_show(self.new)}"


def differences(
    old: object,
    new: object,
    path: str = "",
    *,
    is_equal: Callable[[object, object], bool],
    is_compared: Callable[[str, str], bool] = lambda path, key: True,
    into_lists: bool = False,
) -> Iterator[Difference]:
    """Yield the values that differ, in the order of the first tree.

    Args:
        old: A tree of mappings.
        new: The other one.
        path: What the paths begin with.
        is_equal: What equal means for two leaves: there are several meanings, none of them usual.
        is_compared: Whether an entry counts, by the path of its mapping and its key.
        into_lists: Whether the entries of lists are compared one by one; otherwise a list is a
            leaf. Lists of unlike lengths always are.

    >>> from operator import eq
    >>> [str(one) for one in differences({"a": {"b": 1}}, {"a": {"b": 2}, "c": 3}, is_equal=eq)]
    ['a.b: 1 -> 2', 'c: nothing -> 3']
    """

    def walk(old: object, new: object, path: str) -> Iterator[Difference]:
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for key in dict.fromkeys([*old, *new]):
                if is_compared(path, str(key)):
                    below = f"{path}.{key}" if path else str(key)
                    yield from walk(old.get(key, NOTHING), new.get(key, NOTHING), below)
        elif into_lists and _are_lists(old, new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):  # type: ignore[call-overload]
                yield from walk(one, other, f"{path}[{index}]")
        elif not is_equal(old, new):
            yield Difference(path, old, new)

    return walk(old, new, path)


def _are_lists(old: object, new: object) -> bool:
    return isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new)


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
