"""A schedule of an optimizer's parameters: torch's scheduler, and when it steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookloop.errors import ModelError
from hookloop.every import Every

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler


@dataclass
class Schedule:
    """One of torch's schedulers, stepped every iteration unless told otherwise.

    Args:
        scheduler: Any scheduler of ``torch.optim.lr_scheduler``.
        every: When it steps, in iterations or epochs.
        metric: What ``ReduceLROnPlateau`` looks at, for example ``"val/loss"``; it then steps after
            each validation.
    """

    scheduler: LRScheduler
    every: Every | int | str = 1
    metric: str | None = None

    def __post_init__(self) -> None:
        from torch.optim.lr_scheduler import ReduceLROnPlateau

        self.every = Every.parse(self.every)
        if self.every.unit == "seconds":
            raise ModelError(f"A schedule steps by iterations or epochs, not every '{self.every}'.")
        if isinstance(self.scheduler, ReduceLROnPlateau) and self.metric is None:
            raise ModelError(
                "ReduceLROnPlateau needs a metric to look at: "
                "Schedule(scheduler, metric='val/loss')."
            )

    def is_due(self, counter: str, count: int) -> bool:
        """Tell whether to step when a counter (``iters`` or ``epochs``) has reached a count."""
        every = Every.parse(self.every)
        return self.metric is None and every.unit == counter and count % every.count == 0

    def state_dict(self) -> dict[str, object]:
        """Return torch's own state of the scheduler."""
        state: dict[str, object] = self.scheduler.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        self.scheduler.load_state_dict(dict(state))


def named_schedules(
    schedule: Schedule | LRScheduler | Mapping[str, Schedule | LRScheduler] | None,
) -> dict[str, Schedule]:
    """Bring every way of giving schedules to one: by name, each with its interval."""
    if schedule is None:
        return {}
    by_name = schedule if isinstance(schedule, Mapping) else {"default": schedule}
    return {
        str(name): one if isinstance(one, Schedule) else Schedule(one)
        for name, one in by_name.items()
    }
