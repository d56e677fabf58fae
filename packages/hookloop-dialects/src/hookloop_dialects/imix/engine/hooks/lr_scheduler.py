"""`LRSchedulerHook`: step a scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.errors import HookError
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase, PriorityStatus

if TYPE_CHECKING:
    import torch
    from torch.optim.lr_scheduler import LRScheduler


class LRSchedulerHook(HookBase):
    """Log the learning rate that was used, then step the scheduler, after each update.

    Where a hook makes the updates, an update spans ``gradient_accumulation_steps`` iterations,
    unless ``is_lr_accumulation`` in the config is false.

    Args:
        optimizer: The optimizer whose rate is logged.
        scheduler: A scheduler of torch.
    """

    # As in iMIX: right after the update, before hooks of level NORMAL read the rate.
    _level = PriorityStatus.HIGH
    takes_part_in_training = True

    def __init__(self, optimizer: torch.optim.Optimizer, scheduler: LRScheduler) -> None:
        super().__init__()
        self._optimizer = optimizer
        self._scheduler = scheduler
        self._group = _largest(optimizer)

    def state_dict(self) -> dict[str, object]:
        state: dict[str, object] = self._scheduler.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._scheduler.load_state_dict(dict(state))

    def before_train(self) -> None:
        schedules = self.trainer.run.schedules.values()
        if any(schedule.scheduler is self._scheduler for schedule in schedules):
            raise HookError(
                "LRSchedulerHook: the Trainer steps this scheduler already. Pass it to either the "
                "hook or the Trainer, not to both."
            )

    def after_train_iter(self) -> None:
        trainer = self.trainer
        if trainer.is_lr_accumulation and (trainer.iter + 1) % trainer.gradient_accumulation_steps:
            return
        rate = self._optimizer.param_groups[self._group]["lr"]  # Before the step changes it.
        self.trainer.log_buffer.put_scalar("lr", rate, smoothing_hint=False)
        self._scheduler.step()


def _largest(optimizer: torch.optim.Optimizer) -> int:
    """Return the index of the group whose rate is logged."""
    # As in iMIX: the largest group, or one with the most common rate if each has one parameter.
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    if max(sizes) > 1:
        return sizes.index(max(sizes))
    rates = [group["lr"] for group in optimizer.param_groups]
    return rates.index(Counter(rates).most_common(1)[0][0])
