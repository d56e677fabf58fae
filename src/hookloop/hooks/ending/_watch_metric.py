"""`WatchMetric`: the base of hooks that watch one metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.metrics.results import is_left_out

if TYPE_CHECKING:
    from hookloop.engine.run import Run

PHASES = ("train", "val", "test")


class WatchMetric(Hook):
    """Call `look` with each new value of a metric.

    For a metric of the validation that is after each validation, also within an epoch. For a metric
    of the training it is after each epoch, with the mean of the epoch.

    Args:
        metric: Name in the metric store, with its phase: ``"val/accuracy"``.

    Example:
        >>> class Print(WatchMetric):
        ...     def look(self, run, value):
        ...         print(self.metric, value)
        >>> Print("val/loss").reads
        ('val/loss',)
    """

    priority = Priority.LOWEST  # After all hooks that may put the metric.

    def __init__(self, metric: str) -> None:
        if "/" not in metric.strip("/"):
            phase, underscore, rest = metric.partition("_")
            meant = (
                f"{phase}/{rest}" if underscore and phase in PHASES else f"val/{metric.strip('/')}"
            )
            raise HookError(
                f"{type(self).__name__}: metric={metric!r} has no phase. Did you mean '{meant}'?"
            )
        self.metric = metric
        self.reads = (metric,)
        self._validated = False
        self._looked = False

    def look(self, run: Run, value: float) -> None:
        """Handle a new value, which may be NaN."""
        raise NotImplementedError

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        if not is_left_out(self.metric, metrics, run.val_data):
            self._validated = True
        value = self._agreed(run, metrics.get)
        if value is not None:
            self._looked = True
            self.look(run, value)

    def after_epoch(self, run: Run) -> None:
        validated, looked = self._validated, self._looked
        self._validated = self._looked = False
        if looked:
            return
        if self.metric.startswith("train/"):
            self._look(run, run.metrics.mean)
        elif validated or not self.metric.startswith("val/"):
            # A hook that acts after this one may put it. Without a validation in this epoch, the
            # newest value of the validation would be an old one.
            self._look(run, run.metrics.latest)

    def _look(self, run: Run, read: Callable[[str], float | None]) -> None:
        value = self._agreed(run, read)
        if value is not None:
            self.look(run, value)

    def _agreed(self, run: Run, read: Callable[[str], float | None]) -> float | None:
        """Read the metric on the first rank, for all: what follows must happen on each of them."""
        # A hook that runs on the first rank alone may have put it.
        return run._internals.ranks.share(read(self.metric) if run.world.is_main else None)
