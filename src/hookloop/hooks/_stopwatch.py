"""The time that a run has taken, over all its starts."""

from __future__ import annotations

from time import monotonic


class Stopwatch:
    """Counts seconds from each start on, after those of earlier starts.

    A run that goes back to a checkpoint gets no time back: of two counts, the larger one holds.

    >>> watch = Stopwatch()
    >>> watch.load(60.0)
    >>> watch.load(20.0)
    >>> watch.seconds, watch.earlier
    (60.0, 60.0)
    """

    def __init__(self) -> None:
        self._before = 0.0
        # Not time(), which jumps when the clock of the machine is set.
        self._began: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + (monotonic() - self._began if self._began is not None else 0.0)

    @property
    def earlier(self) -> float:
        """Those of earlier starts."""
        return self._before

    def start(self) -> None:
        """Count from now on; what was counted in a start that did not end is forgotten."""
        self._began = monotonic()

    def stop(self) -> None:
        """Keep the count until the next start."""
        self._before, self._began = self.seconds, None

    def load(self, seconds: float) -> None:
        """Continue after the seconds of a checkpoint, unless more have passed already."""
        if seconds > self.seconds:
            self._before = seconds
            self._began = monotonic() if self._began is not None else None
