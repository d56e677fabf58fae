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

    def of(self, passes: int, first: int, end: int) -> list[object] | None:
        """Return what some batches of a pass consist of; None if that is not known."""
        found = {
            batch: group
            for in_pass, batch, group in self._held
            if in_pass == passes and first <= batch < end
        }
        return [found[batch] for batch in range(first, end)] if len(found) == end - first else None
