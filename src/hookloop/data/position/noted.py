"""The indices of the newest batches, for who wants to know which samples an iteration had."""

from __future__ import annotations

from collections import deque


class NotedIndices:
    """Keeps the indices of the newest batches of a stream, also of those drawn in advance."""

    def __init__(self) -> None:
        self._held: deque[tuple[int, int, object]] = deque()

    def keep(self, most: int) -> None:
        """Keep so many batches from now on."""
        self._held = deque(self._held, maxlen=most)

    def note(self, passes: int, batch: int, group: object) -> None:
        """Keep what a batch of a pass consists of."""
        self._held.append((passes, batch, group))

    def before(self, passes: int, end: int, count: int) -> list[object] | None:
        """Return what the last batches before one of a pass consist of; None if it is not known."""
        found = {
            (in_pass, batch): group
            for in_pass, batch, group in self._held
            if (in_pass, batch) < (passes, end)
        }
        newest = [found[place] for place in sorted(found)[len(found) - count :]]
        return newest if len(newest) == count else None
