"""`LRSchedulerHook`: set learning rates by step; from an older version of Pointrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hookloop_dialects.pointrix.hook.base_hook import Hook

if TYPE_CHECKING:
    from hookloop_dialects.pointrix.trainer import TrainerFacade


class LRSchedulerHook(Hook):
    """Set the learning rate of each parameter group before its step.

    Args:
        schedulers: A function of the step for each parameter group by name.
    """

    takes_part_in_training = True  # It changes the rates that the update uses.

    def __init__(self, schedulers: Mapping[str, Callable[[int], float]] | None = None) -> None:
        self.schedulers = dict(schedulers or {})

    def before_train_iter(self, trainner: TrainerFacade) -> None:
        for group in trainner.optimizer.param_groups:
            schedule = self.schedulers.get(group["name"])
            if schedule is not None:
                group["lr"] = schedule(trainner.global_step)
