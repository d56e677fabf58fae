"""The loop: training, validation and test, with every mount point at its place.

Read from top to bottom it is the table of points.py, carried out. Hooks never run any of this; they
ask through the run's verbs, and the loop obeys here, between iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import torch
from torch import Tensor

from hookloop.core.contract import check_written
from hookloop.core.plan import Calls, fire
from hookloop.core.run import Phase, Run
from hookloop.core.saving import Saver
from hookloop.core.turn import Turn, output_of, targets_of
from hookloop.core.validation import Validation
from hookloop.data.batch import size_of, to_device
from hookloop.data.randomness import Randomness
from hookloop.data.source import Source
from hookloop.errors import DataError
from hookloop.metrics.meters import Meters, Metric


@dataclass(frozen=True)
class Span:
    """The points around one kind of evaluation."""

    before: Calls
    before_epoch: Calls
    before_iter: Calls
    after_iter: Calls
    after_epoch: Calls
    after: Calls


class Loop:
    """Drives one run.

    Args:
        run: The run; its counters and current values are written here and nowhere else.
        turns: The work of an iteration.
        metrics: What evaluations compute besides the loss.
        validation: When to validate.
        accumulate: Microbatches per iteration.
        epoch_iters: Iterations per epoch, if not the data decides.
        autocast: The context of forward and loss, or None for full precision.
        saver: Makes the checkpoints that were asked for.
    """

    def __init__(  # noqa: PLR0913 - what the Trainer prepared
        self,
        run: Run,
        turns: list[Turn],
        *,
        metrics: Mapping[str, Metric],
        validation: Validation,
        accumulate: int,
        epoch_iters: int | None,
        autocast: AbstractContextManager[None] | None,
        saver: Saver,
    ) -> None:
        self.run = run
        self.turns = turns
        self.metrics = metrics
        self.validation = validation
        self.accumulate = accumulate
        self.epoch_iters = epoch_iters
        if autocast is not None:  # Full precision needs no context, which would cost a third of us.
            self._compute = partial(self._compute_in, autocast)  # type: ignore[method-assign]
        self.saver = saver
        self.randomness: Randomness | None = None
        self._moves = run.device.type != "cpu"
        self._groups: Iterator[list[object]] | None = None

    def train(self) -> None:
        """Train until a limit is reached or a stop is asked for."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        fire(plan.before_train, run)
        if progress.stage != "inside":
            self._take_up_randomness()
        if self.validation.due_at_start(progress):
            self.validate()
        if progress.stage == "closing":  # The checkpoint was made before this epoch's validation.
            self._end_epoch()
        while not (progress.is_done or run.requests.stop) and self._train_epoch():
            self._end_epoch()
        if self.validation.due_at_end(progress):
            run.validate()
            self._obey()
        if run.requests.stop:
            fire(plan.on_stop, run, run.requests.stop.reason)
        fire(plan.after_train, run)
        self._obey()

    def _train_epoch(self) -> bool:
        """Train one epoch; return whether its end was reached."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        if progress.stage != "inside":
            progress.stage, progress.iter_in_epoch = "inside", 0
            run.metrics.start_epoch("train")
        fire(plan.before_epoch, run)
        run.model.train()
        fire(plan.before_train_epoch, run)
        self._take_up_randomness()
        self._obey()  # A validation that was due when the run was cut off.
        due, requests, limit = self.validation.due_after_iter, run.requests, progress.max_iters
        for batches in self._epoch_batches():
            self._iterate(batches)
            if due is not None and due(progress):
                run.validate()
            if requests.any:
                self._obey()
            if requests.stop or progress.iter == limit:
                break
        else:
            progress.epoch_iters = progress.iter_in_epoch
        if progress.iter_in_epoch != progress.epoch_iters:
            return False
        if progress.iter_in_epoch == 0:
            raise DataError(f"{self._source().name} is empty: it gave no batch.")
        progress.epoch += 1
        progress.stage = "closing"
        fire(plan.after_train_epoch, run)
        return True

    def _end_epoch(self) -> None:
        """Save and validate what is due after an epoch, and close it."""
        run, plan, progress = self.run, self.run.plan, self.run.progress
        if self._source().is_one_pass and not progress.is_done:
            run.stop(f"{self._source().name} ended after {progress.iter} iterations")
        if self.validation.due_after_epoch(progress):
            run.validate()
        self._obey()
        if run.requests.validate:  # Interrupted: the epoch is closed by the run that resumes.
            return
        progress.stage = "between"
        fire(plan.after_epoch, run)
        fire(plan.after_epoch_profile, run)
        self._obey()

    def _iterate(self, batches: list[object]) -> None:
        """Make one iteration from a group of microbatches: an update per turn."""
        run, plan = self.run, self.run.plan
        if self._moves:
            batches = [to_device(batch, run.device) for batch in batches]
        run.batch = batches[0]
        fire(plan.before_train_iter, run)
        for turn in self.turns:
            turn.zero_grad()
            for batch in batches:
                run.batch = batch
                loss = self._compute(turn)
                if loss is None:
                    break  # The step has no use for this turn now.
                turn.record(run, loss)
                turn.backward(loss if len(batches) == 1 else loss / len(batches))
                fire(plan.after_backward, run)
            else:
                if turn.scaler is not None:
                    turn.unscale()
                fire(plan.before_update, run)
                turn.update(run)
                fire(plan.after_update, run)
        run.progress.iter += 1
        run.progress.iter_in_epoch += 1
        fire(plan.after_train_iter, run)

    def _compute(self, turn: Turn) -> Tensor | None:
        """Compute output and loss of the microbatch at hand; hooks may replace either."""
        run = self.run
        run.output = turn.forward(run)
        fire(run.plan.after_forward, run)
        run.loss = turn.loss_of(run)
        fire(run.plan.after_loss, run)
        return run.loss

    def _compute_in(self, autocast: AbstractContextManager[None], turn: Turn) -> Tensor | None:
        with autocast:
            return Loop._compute(self, turn)

    def _obey(self) -> None:
        """Do what hooks asked for: first save, so that a failing validation loses nothing."""
        run, requests = self.run, self.run.requests
        while requests.any:
            requests.any = False
            self.saver.report(run)
            saves, requests.saves = requests.saves, []
            self.saver.save(run, saves)
            if requests.validate and not run.is_interrupted:
                self.validate()

    def save_requested(self) -> None:
        """Save what was asked for when the loop had failed, and wait for it."""
        saves, self.run.requests.saves = self.run.requests.saves, []
        self.saver.save(self.run, saves)
        self.saver.close(self.run)

    def validate(self) -> dict[str, float]:
        """Run every validation stream once."""
        run, plan = self.run, self.run.plan
        before = Randomness.now()
        span = Span(
            plan.before_val,
            plan.before_val_epoch,
            plan.before_val_iter,
            plan.after_val_iter,
            plan.after_val_epoch,
            plan.after_val,
        )
        metrics = self._evaluate("val", run.val_data, span)
        if run.is_interrupted:  # Left unfinished: whoever resumes makes it from the beginning.
            before.restore()
            run.requests.validate = True
        else:
            run.requests.validate = False
            self.validation.note(run.progress)
        return metrics

    def test(self) -> dict[str, float]:
        """Run every test stream once."""
        plan = self.run.plan
        span = Span(
            plan.before_test,
            plan.before_test_epoch,
            plan.before_test_iter,
            plan.after_test_iter,
            plan.after_test_epoch,
            plan.after_test,
        )
        return self._evaluate("test", self.run.test_data, span)

    def _evaluate(
        self, phase: Phase, streams: Mapping[str, Source], span: Span
    ) -> dict[str, float]:
        run = self.run
        if not streams:
            raise DataError(f"There is nothing to evaluate: give {phase}_data=.")
        was_phase, was_training = run.phase, run.model.training
        run.phase = phase
        fire(span.before, run)
        run.model.eval()
        fire(span.before_epoch, run)
        results: dict[str, Tensor | float] = {}
        for name, source in streams.items():
            run.stream = name or phase
            with torch.no_grad():
                values = self._evaluate_stream(source, span)
            prefix = f"{phase}/{name}" if name else phase
            results |= {f"{prefix}/{metric}": value for metric, value in values.items()}
        metrics: dict[str, float] = {}
        if not run.is_interrupted:  # Otherwise they are those of a part of the data.
            metrics = self._publish(phase, results)
            fire(span.after_epoch, run, metrics)
        fire(span.after, run)
        run.phase, run.stream = was_phase, was_phase
        run.model.train(was_training)
        return metrics

    def _publish(self, phase: Phase, results: Mapping[str, Tensor | float]) -> dict[str, float]:
        """Put the results of an evaluation into the metric store; return them without the phase."""
        metrics = self.run.metrics
        metrics.start_epoch(phase)
        for name, value in results.items():
            metrics.put(name, value)
        check_written(self.run.hooks, phase, metrics.names())
        return metrics.stream(phase)

    def _evaluate_stream(self, source: Source, span: Span) -> dict[str, Tensor | float]:
        run = self.run
        meters = Meters(self.metrics)
        samples = 0
        for batch in source:
            run.batch = to_device(batch, run.device) if self._moves else batch
            samples = size_of(run.batch)
            fire(span.before_iter, run)
            for turn in self.turns:
                loss = self._compute(turn)
                if loss is not None and loss.ndim == 0:
                    meters.add(turn.loss_name, loss, samples)
            meters.update(output_of(run.output), targets_of(run.batch), samples)
            fire(span.after_iter, run)
            if run.is_interrupted:
                break
        if not samples:
            raise DataError(f"{source.name} is empty: it gave no batch.")
        return meters.compute()

    def _epoch_batches(self) -> Iterator[list[object]]:
        """Return the groups of microbatches of one epoch.

        With a fixed number of iterations per epoch the data is read on across the borders of epochs
        and begun again where it ends.
        """
        source = self._source()
        if self.epoch_iters is None:
            return source.groups(self.accumulate)
        left = range(self.run.progress.iter_in_epoch, self.epoch_iters)
        groups = (self._next_group(source) for _ in left)
        return takewhile(bool, groups)

    def _next_group(self, source: Source) -> list[object]:
        for _ in range(2):  # The first may be the end of a pass; the second is a new one.
            self._groups = self._groups or source.groups(self.accumulate)
            group = next(self._groups, None)
            if group is not None:
                return group
            self._groups = None
        return []

    def _take_up_randomness(self) -> None:
        """Continue the random numbers of the run that is resumed, whatever hooks drew meanwhile."""
        if self.randomness is not None:
            self.randomness.restore()
            self.randomness = None

    def _source(self) -> Source:
        if self.run.train_data is None:
            raise DataError("There is nothing to train on: give train_data=.")
        return self.run.train_data
