"""When to validate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from hookloop.core.run import Progress
from hookloop.every import Every


@dataclass
class Validation:
    """The times at which the loop validates.

    A run that reaches its end validates there too, unless it just did.

    Args:
        every: Interval in iterations, epochs or time.
        begin: The first iteration or epoch after which to validate, in the unit of ``every``.
        at_start: Whether to validate before the first iteration.
        enabled: Whether there is anything to validate on.
    """

    every: Every
    begin: int = 0
    at_start: bool = False
    enabled: bool = True
    last_time: float = 0.0

    def __post_init__(self) -> None:
        self.last_time = monotonic()

    def note(self, progress: Progress) -> None:
        """Remember that a validation takes place now."""
        progress.validated_at = progress.iter
        self.last_time = monotonic()

    def due_at_start(self, progress: Progress) -> bool:
        """Tell whether to validate before the first iteration."""
        return self.enabled and self.at_start and progress.iter == 0 != progress.validated_at

    @property
    def due_after_iter(self) -> Callable[[Progress], bool] | None:
        """Tell whether an iteration calls for a validation; None if none ever does."""
        if not self.enabled or self.every.unit == "epochs":
            return None
        return self._due_by_time if self.every.unit == "seconds" else self._due_by_iter

    def _due_by_time(self, progress: Progress) -> bool:
        return monotonic() - self.last_time >= self.every.count

    def _due_by_iter(self, progress: Progress) -> bool:
        return progress.iter % self.every.count == 0 and progress.iter >= self.begin

    def due_after_epoch(self, progress: Progress) -> bool:
        """Tell whether the epoch just completed calls for a validation."""
        return self.due_at_end(progress) if progress.is_done else self.is_regular(progress)

    def is_regular(self, progress: Progress) -> bool:
        """Return whether the interval asks for a validation after this epoch, last or not."""
        return (
            self.enabled
            and self.every.unit == "epochs"
            and self.every.due(progress)
            and progress.epoch >= self.begin
            and progress.validated_at != progress.iter
        )

    def due_at_end(self, progress: Progress) -> bool:
        """Tell whether a run at its limit still lacks the validation of its last state."""
        done = progress.epoch if self.every.unit == "epochs" else progress.iter
        return (
            self.enabled
            and progress.is_done
            and progress.validated_at != progress.iter
            and (done >= self.begin or self.every.unit == "seconds")
        )
