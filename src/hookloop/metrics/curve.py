"""A curve of bounded length for any number of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

LENGTH = 400


class Curve:
    """Values at even distances; when there are too many, every other one is removed.

    Args:
        length: How many values to keep at most.

    >>> curve = Curve(length=4)
    >>> for value in range(10):
    ...     curve.add(value)
    >>> curve.values
    [0, 4, 8, 9]
    """

    def __init__(self, length: int = LENGTH) -> None:
        self.length = length
        self._kept: list[float] = []
        self._distance = 1
        self._count = 0
        self._newest = 0.0

    @property
    def values(self) -> list[float]:
        """The values that are kept, and always the newest one."""
        is_kept = (self._count - 1) % self._distance == 0
        return [*self._kept] if is_kept or not self._count else [*self._kept, self._newest]

    def add(self, value: float) -> None:
        """Add the next value."""
        if self._count % self._distance == 0:
            self._kept.append(value)
            # Every other one goes, and not the oldest: the curve must show the whole run.
            if len(self._kept) > self.length:
                self._kept = self._kept[::2]
                self._distance *= 2
        self._count += 1
        self._newest = value

    def state_dict(self) -> dict[str, object]:
        """Return plain values, for a checkpoint."""
        return {
            "kept": list(self._kept),
            "distance": self._distance,
            "count": self._count,
            "newest": self._newest,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        self._kept = list(cast("list[float]", state["kept"]))
        self._distance = cast("int", state["distance"])
        self._count = cast("int", state["count"])
        self._newest = cast("float", state["newest"])
