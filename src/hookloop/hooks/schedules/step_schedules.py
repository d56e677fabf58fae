"""`StepSchedules`: step the learning-rate schedules of a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.engine.hook import SCHEDULES, Hook, Priority
from hookloop.metrics.results import is_left_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hookloop.engine.run import Run
    from hookloop.lr_schedule import Schedule
    from hookloop.requests import Rewind

_log = logging.getLogger("hookloop")


class StepSchedules(Hook):
    """Step every schedule of the run when it is due: by iterations, epochs, or on a metric.

    At ``after_train_iter``, hooks before this one see the learning rate that was used, and hooks
    after it (a checkpoint, for example) the next one.

    Example:
        >>> StepSchedules().owns
        ('schedules',)
    """

    priority = Priority.LOW
    owns: Sequence[str] = (SCHEDULES,)
    takes_part_in_training = True

    def __init__(self) -> None:
        self._by_metric: list[Schedule] = []  # Empty, so a validation without training steps none.
        self._begun: dict[str, tuple[int, int]] = {}  # The count and the steps made by then.

    def describe(self, run: Run) -> Mapping[str, object]:
        rates = {
            name: [group["lr"] for group in one.param_groups]
            for name, one in run.optimizers.items()
        }
        shown = {
            name: several[0] if len(set(several)) == 1 else several
            for name, several in rates.items()
        }
        return {"lr" if name == "default" else f"lr {name}": one for name, one in shown.items()}

    def before_train(self, run: Run) -> None:
        # Looked up once, so that an iteration only steps.
        self._by_iter = [
            (int(s.every.count), s.scheduler.step)
            for s in run.schedules.values()
            if s.counts("iters")
        ]
        self._by_epoch = [s for s in run.schedules.values() if s.counts("epochs")]
        self._by_metric = [s for s in run.schedules.values() if s.metric is not None]
        self._begin(run)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self._begin(run)

    def after_train_iter(self, run: Run) -> None:
        for count, step in self._by_iter:
            if run.progress.iter % count == 0:
                step()

    def after_train_epoch(self, run: Run) -> None:
        for schedule in self._by_epoch:
            schedule.step(run.progress.epoch)
        self._look_for_others(run)

    def after_train(self, run: Run) -> None:
        self._look_for_others(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        for schedule in self._by_metric:
            if is_left_out(schedule.metric or "", metrics, run.val_data):
                continue
            # From the store, which also has metrics that hooks have computed. That of the first
            # rank, because learning rates must be equal on all of them.
            value = run.metrics.latest(schedule.metric or "") if run.world.is_main else 0.0
            schedule.step_on(run._internals.ranks.share(value))

    def _begin(self, run: Run) -> None:
        """Note how many steps the schedules have made, to notice those of others."""
        self._begun = {
            name: (_counted(one, run), steps)
            for name, one in run.schedules.items()
            if one.metric is None and (steps := _steps_of(one)) is not None
        }

    def _look_for_others(self, run: Run) -> None:
        """Report a schedule that a hook or a loop of the user's steps, too."""
        for name, (count, steps) in list(self._begun.items()):
            schedule = run.schedules[name]
            own, made = _counted(schedule, run) - count, (_steps_of(schedule) or 0) - steps
            if made > own and run.world.is_main:
                del self._begun[name]  # Once.
                _log.warning(
                    "The schedule%s %s was stepped %d times where the Trainer stepped it %d times: "
                    "a hook or the loop steps it, too. Leave that to the Trainer, or do not give "
                    "it as schedule=.",
                    "" if name == "default" else f" '{name}'",
                    type(schedule.scheduler).__name__,
                    made,
                    own,
                )


def _counted(schedule: Schedule, run: Run) -> int:
    """Return how many steps are due from the beginning of the run until now."""
    progress = run.progress
    done = progress.iter if schedule.every.unit == "iters" else progress.epoch
    return done // int(schedule.every.count)


def _steps_of(schedule: Schedule) -> int | None:
    """Return how many steps a scheduler has made; None if it does not say."""
    steps = getattr(schedule.scheduler, "_step_count", None)
    return steps if isinstance(steps, int) else None
