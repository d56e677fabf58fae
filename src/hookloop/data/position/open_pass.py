"""The pass that is read a group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

Size = int | Callable[[], int]
"""How many microbatches a group has; a function where it changes."""
Groups = Iterator[list[object]]


class OpenPass:
    """The pass that is read a group at a time; it continues from one epoch to the next.

    Attributes:
        groups: What is left of it; None if the next group starts a new one.
    """

    def __init__(self) -> None:
        self.groups: Groups | None = None

    def take(
        self, start: Callable[[Size], Groups], size: Size, *, restarts: bool = True
    ) -> list[object]:
        """Return the next group; an empty one at the end of a pass, unless a new one starts."""
        # The first try may find the end of a pass; the second starts a new one.
        for _ in range(1 + restarts):
            self.groups = self.groups or start(size)
            group = next(self.groups, None)
            if group is not None:
                return group
            self.groups = None
        return []

    def epoch(self, start: Callable[[Size], Groups], size: Size, iterations: int | None) -> Groups:
        """Return so many groups, from passes that follow each other, or those of one pass."""
        if iterations is None:
            return start(size)
        return takewhile(bool, (self.take(start, size) for _ in range(iterations)))
