"""What Transformers' loop does beyond ours: switches, logs, and events between our points.

`TransformersCompanion` acts before the callbacks, `EndEpoch` after them, and `EndStep` after the
schedules have stepped, as they have in Transformers when a step ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from hookloop import Hook, Priority
from hookloop.dialects import (
    Companion,
    internals_of,
)
from hookloop.errors import HookError
from hookloop_callbacks.on_transformers.arguments import writes_by_time
from hookloop_callbacks.on_transformers.names import IntervalStrategy, evaluated
from hookloop_callbacks.on_transformers.points import EPOCH_END, LOG, STEP_END, SUBSTEP_END
from hookloop_callbacks.on_transformers.state import KEPT

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_callbacks.on_transformers.facade import TransformersFacade

_log = logging.getLogger("hookloop")

LOSS = "train/loss"
CHUNK = 100  # As many recent losses as the metric store keeps.


class TransformersCompanion(Companion):
    """Reset the switches, and log, before the callbacks act.

    Args:
        facade: Has the arguments that callbacks are given.
    """

    name = "dialect:transformers"

    def __init__(self, facade: TransformersFacade) -> None:
        self._facade = facade
        self._losses = Losses()
        self._microbatch = 0
        self._is_epoch_open = False
        self._began = 0.0
        self._first_iter = 0
        self._rate = 0.0
        self._evaluation = (0.0, 0, 0)
        self._validates_itself = False
        self._log_steps = self._val_iters = self._limit = 0
        self._logs_first = self._logs_epochs = False
        self._group: dict[str, Any] = {}

    def prepare(self, run: Run) -> None:
        """Watch the batches of updates that have several; others are spared the calls."""
        if run.accumulate > 1:
            # On the instance, so that a plan without accumulation has no call there.
            self.before_forward = self._count_batch  # type: ignore[method-assign]

    def state_dict(self) -> dict[str, object]:
        state = self._facade.state
        return {**{name: getattr(state, name) for name in KEPT}, "losses": self._losses.state()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        for name in KEPT:
            setattr(self._facade.state, name, state[name])
        self._losses.load(cast("Mapping[str, Any]", state["losses"]))

    def before_run(self, run: Run) -> None:
        self._is_epoch_open = False

    def before_train(self, run: Run) -> None:
        self._facade.control.should_training_stop = False
        self._look_up(run)
        self._began, self._first_iter = perf_counter(), run.progress.iter
        if run.progress.iter == 0:
            self._losses = Losses()

    def _look_up(self, run: Run) -> None:
        """Read once what each step asks for."""
        args: Any = self._facade.args
        by_steps = args.logging_strategy == IntervalStrategy.STEPS
        self._log_steps = self._facade.state.logging_steps if by_steps else 0
        if self._log_steps and "logging_steps" not in run.config and writes_by_time(run):
            _log.warning(
                "Metrics are written by time, and callbacks get on_log by updates, every %d: for "
                "another number write config={'logging_steps': ...}, or WriteMetrics(every=...) in "
                "iterations.",
                self._log_steps,
            )
        self._logs_first = bool(args.logging_first_step)
        self._logs_epochs = args.logging_strategy == IntervalStrategy.EPOCH
        every = internals_of(run).val_every
        self._val_iters = int(every.count) if every is not None and every.unit == "iters" else 0
        self._limit = self._facade.state.max_steps

    def before_train_epoch(self, run: Run) -> None:
        self._is_epoch_open = True
        self._facade.refresh()
        optimizers = list(run.optimizers.values())
        self._group = optimizers[0].param_groups[0] if optimizers else {"lr": 0.0}
        if run.progress.iter_in_epoch == 0:
            self._facade.control.should_epoch_stop = False

    def before_train_iter(self, run: Run) -> None:
        control = self._facade.control
        control.should_log = control.should_evaluate = control.should_save = False
        self._microbatch = 0

    def _count_batch(self, run: Run) -> None:
        if run.phase == "train":
            if 0 < self._microbatch < run.accumulate:
                run.fire(SUBSTEP_END.name)
            self._microbatch += 1

    def after_train_iter(self, run: Run) -> None:
        # Before the schedules step: the rate with which this update was made.
        self._rate = self._group["lr"]

    def before_val_epoch(self, run: Run) -> None:
        self._facade.refresh()
        self._evaluation = (perf_counter(), 0, 0)

    before_test_epoch = before_predict_epoch = before_val_epoch

    def after_val_iter(self, run: Run) -> None:
        began, batches, samples = self._evaluation
        self._evaluation = (began, batches + 1, samples + run.batch_size)

    after_test_iter = after_predict_iter = after_val_iter

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._facade.metrics = self._measured(metrics, "eval")
        # A copy, since callbacks may take entries out of it.
        self.log(run, dict(self._facade.metrics))
        self._facade.metrics["epoch"] = self._facade.state.epoch
        self._facade.control.should_evaluate = False

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._facade.metrics = self._measured(metrics, "test")

    def after_predict_epoch(self, run: Run) -> None:
        self._facade.metrics = self._measured({}, "test")

    def _measured(self, metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
        """Return the metrics of an evaluation, with its speed."""
        began, batches, samples = self._evaluation
        return evaluated(metrics, prefix) | speed(prefix, perf_counter() - began, samples, batches)

    def after_save_checkpoint(self, run: Run, saved: object) -> None:
        self._facade.control.should_save = False

    def after_train_epoch(self, run: Run) -> None:
        self._is_epoch_open = False
        control, every = self._facade.control, internals_of(run).val_every
        if every is not None and every.unit == "epochs" and every.due(run.progress):
            control.should_evaluate = True
        self._validates_itself = control.should_evaluate
        control.should_log = control.should_log or self._logs_epochs

    def after_train(self, run: Run) -> None:
        # A run that a signal ended continues with this epoch when it is resumed.
        if self._is_epoch_open and not run.is_interrupted:
            self._end_epoch(run)
        self._losses.read(run)
        steps = run.progress.iter - self._first_iter
        samples = steps * self._facade.args.train_batch_size * run.accumulate
        numbers = speed("train", perf_counter() - self._began, samples, steps)
        numbers["total_flos"] = self._facade.state.total_flos
        numbers["train_loss"] = self._losses.mean_of_all()
        self.log(run, numbers)

    # --- what the switches ask for ---

    def set_switches(self, run: Run) -> None:
        """Set what the loop itself is about to do, as the first callback of Transformers does."""
        control, step = self._facade.control, run.progress.iter
        if self._val_iters and step % self._val_iters == 0:
            control.should_evaluate = True
        self._validates_itself = control.should_evaluate
        if (self._log_steps and step % self._log_steps == 0) or (step == 1 and self._logs_first):
            control.should_log = True
        if step >= self._limit > 0:
            control.should_training_stop = True
        if step - self._losses.read_at >= CHUNK:
            self._losses.read(run)

    def act(self, run: Run) -> None:
        """Do what callbacks asked for: log, validate, save, stop."""
        control = self._facade.control
        if control.should_log and run.progress.iter > self._losses.start:
            self.log(run, self._numbers(run))
        if control.should_evaluate and not self._validates_itself:
            run.validate(planned=True)  # The steps of the callbacks are a plan.
        if control.should_save:
            run.save()
        if control.should_epoch_stop:
            raise HookError(
                "A callback set control.should_epoch_stop, which would end this epoch and begin "
                "the next one: hookloop has no such request. Set should_training_stop, or "
                "Trainer(data=Data(epoch_iters=...))."
            )
        self.stop_if_asked(run)
        # Transformers ends the epoch before it validates for the last time.
        is_last = run.progress.iter_in_epoch == run.progress.epoch_iters
        if control.should_training_stop and self._is_epoch_open and not is_last:
            self._end_epoch(run)

    def stop_if_asked(self, run: Run) -> None:
        """Request the end of the training, unless it ends by itself."""
        limit = run.progress.total_iters
        ends = run.progress.is_done or (limit is not None and run.progress.iter >= limit)
        if self._facade.control.should_training_stop and not ends:
            run.stop("a callback set control.should_training_stop")

    def _end_epoch(self, run: Run) -> None:
        """End an epoch of which a part is left."""
        self._is_epoch_open = False
        every = internals_of(run).val_every
        if every is not None and every.unit == "epochs":
            self._facade.control.should_evaluate = True
        self._validates_itself = False
        run.fire(EPOCH_END.name)
        # At the end of a run its validation has been made.
        if run.progress.validated_at == run.progress.iter:
            self._facade.control.should_evaluate = False
        self.act(run)

    def _numbers(self, run: Run) -> dict[str, float]:
        numbers = {"loss": self._losses.mean(run)}
        if "train/grad_norm" in run.metrics:
            numbers["grad_norm"] = run.metrics.latest("train/grad_norm")
        numbers["learning_rate"] = self._rate
        return numbers

    def log(self, run: Run, logs: dict[str, float]) -> None:
        """Add numbers to the history, and give them to all callbacks."""
        state = self._facade.state
        logs["epoch"] = state.epoch
        state.log_history.append({**logs, "step": state.global_step})
        self._facade.control.should_log = False
        run.fire(LOG.name, logs)


def speed(prefix: str, seconds: float, samples: int, steps: int) -> dict[str, float]:
    """Return the figures that Transformers logs of a training or an evaluation."""
    seconds = max(seconds, 1e-9)
    return {
        f"{prefix}_runtime": round(seconds, 4),
        f"{prefix}_samples_per_second": round(samples / seconds, 3),
        f"{prefix}_steps_per_second": round(steps / seconds, 3),
    }


class Losses:
    """The losses since the last log, read from their device many at a time."""

    def __init__(self) -> None:
        self.start = 0  # The iteration of the last log.
        self.read_at = 0
        self._sum = 0.0
        self._of_all = 0.0
        self._counts: dict[str, int] = {}
        self._read = 0

    def read(self, run: Run) -> None:
        """Add up the losses that are new."""
        self.read_at = run.progress.iter
        values = run.metrics.values_since(self._counts, [LOSS]).get(LOSS, [])
        self._counts = run.metrics.counts([LOSS])
        self._sum += sum(values)
        self._of_all += sum(values)
        self._read += len(values)

    def mean(self, run: Run) -> float:
        """Return the mean since the last log, and begin again."""
        self.read(run)
        mean = self._sum / max(run.progress.iter - self.start, 1)
        self._sum, self.start = 0.0, run.progress.iter
        return mean

    def mean_of_all(self) -> float:
        """Return the mean of the training so far."""
        return self._of_all / max(self._read, 1)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint has to hold."""
        return {**vars(self), "_counts": dict(self._counts)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from there."""
        vars(self).update(state)


class EndStep(Hook):
    """Fire the end of a step, and do what the callbacks asked for.

    Args:
        companion: Acts on the switches.
        facade: Has the switches.
    """

    name = "dialect:transformers:step"
    priority = int(Priority.LOW) + 2
    takes_part_in_training = True  # The callbacks are called at points of their own.

    def __init__(self, companion: TransformersCompanion, facade: TransformersFacade) -> None:
        self._companion = companion
        self._facade = facade

    def after_train_iter(self, run: Run) -> None:
        self._companion.set_switches(run)
        run.fire(STEP_END.name)
        control = self._facade.control
        if (
            control.should_log
            or control.should_evaluate
            or control.should_save
            or control.should_training_stop
            or control.should_epoch_stop
        ):
            self._companion.act(run)


class EndEpoch(Hook):
    """Do what the callbacks asked for at the end of an epoch or a validation.

    Args:
        companion: Acts on the switches.
        facade: Has the state.
    """

    name = "dialect:transformers:epoch"
    priority = int(Priority.NORMAL) + 5
    takes_part_in_training = True

    def __init__(self, companion: TransformersCompanion, facade: TransformersFacade) -> None:
        self._companion = companion
        self._facade = facade

    def after_train_epoch(self, run: Run) -> None:
        self._companion.act(run)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        facade = self._facade
        if internals_of(run).purpose == "train":
            facade.note_best()
            self._companion.stop_if_asked(run)
