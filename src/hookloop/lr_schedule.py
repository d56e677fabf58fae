"""A schedule of an optimizer's parameters: torch's scheduler, and when it steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.checkpoint.state.schedules import ScheduleState
from hookloop.errors import ModelError
from hookloop.every import Every

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler


class Schedule:
    """One of torch's schedulers, stepped every iteration unless told otherwise.

    Args:
        scheduler: Any scheduler of ``torch.optim.lr_scheduler``.
        every: When it steps, in iterations or epochs.
        metric: What ``ReduceLROnPlateau`` looks at, for example ``"val/loss"``; it then steps after
            each validation.
    """

    def __init__(
        self,
        scheduler: LRScheduler,
        every: Every | int | str = 1,
        metric: str | None = None,
    ) -> None:
        from torch.optim.lr_scheduler import ReduceLROnPlateau

        if isinstance(scheduler, type) or not hasattr(scheduler, "step"):
            raise ModelError(f"{scheduler!r} is not a scheduler of torch.optim.lr_scheduler.")
        self.scheduler = scheduler
        self.every = Every.parse(every)
        self.metric = metric
        self._state = ScheduleState(scheduler)
        if self.every.unit not in ("iters", "epochs"):
            raise ModelError(f"A schedule steps by iterations or epochs, not every '{self.every}'.")
        if isinstance(self.scheduler, ReduceLROnPlateau) and self.metric is None:
            raise ModelError(
                "ReduceLROnPlateau needs a metric to look at: "
                "Schedule(scheduler, metric='val/loss')."
            )

    def counts(self, unit: str) -> bool:
        """Return whether it steps by ``"iters"`` or ``"epochs"``, and not on a metric."""
        return self.metric is None and self.every.unit == unit

    def step(self, count: int) -> None:
        """Step if the counter that it counts has reached a multiple of its interval."""
        if count % self.every.count == 0:
            self.scheduler.step()

    def step_on(self, value: float) -> None:
        """Step with the value of its metric."""
        self.scheduler.step(value)  # type: ignore[arg-type]

    def state_dict(self) -> dict[str, object]:
        """Return the position in the schedule."""
        return self._state.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position; the curve stays as it was built, so a longer run has a longer one."""
        self._state.load_state_dict(state)
