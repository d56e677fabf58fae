"""Validation, test, prediction: every stream once, between the points of the phase; and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic

import torch
from torch import Tensor

from hookloop.core.checks import check_were_written
from hookloop.core.meetings import Meetings
from hookloop.core.plan import Calls, fire
from hookloop.core.progress import Progress
from hookloop.core.run import Phase, Run, Wanted
from hookloop.core.update import Update, note_error, output_of, targets_of
from hookloop.data.batch import size_of
from hookloop.data.cut import Place
from hookloop.data.source import Source
from hookloop.data.transfer import make_transfer
from hookloop.errors import DataError
from hookloop.every import COUNTED, Every, Unit
from hookloop.metrics.meters import Meters, Metric
from hookloop.metrics.results import LiveResults, Results


@dataclass(frozen=True)
class Span:
    """The points around one kind of evaluation."""

    before: Calls
    before_epoch: Calls
    before_iter: Calls
    after_iter: Calls
    after_epoch: Calls
    after: Calls


class Evaluation:
    """Evaluates the model of a run.

    Args:
        run: The run.
        updates: They compute output and loss, as in training.
        metrics: What is computed besides the loss.
    """

    def __init__(self, run: Run, updates: list[Update], metrics: Mapping[str, Metric]) -> None:
        self.run = run
        self.updates = updates
        self.metrics = metrics
        self.batch_number = 0  # In its stream, for messages.
        self._meetings = Meetings(run)
        self.forward_together: Callable[[], object] | None = None
        """What a rank without a part of a batch calls where a forward needs all ranks."""

    def validate(self, wanted: Wanted = True) -> Results:
        """Run every validation stream once, or those that are wanted."""
        plan, streams = self.run.plan, self.run.val_data
        if isinstance(wanted, frozenset):
            streams = {name: one for name, one in streams.items() if name in wanted}
        span = Span(
            plan.before_val, plan.before_val_epoch, plan.before_val_iter,
            plan.after_val_iter, plan.after_val_epoch, plan.after_val,
        )  # fmt: skip
        return self._evaluate("val", streams, span)

    def test(self) -> Results:
        """Run every test stream once."""
        plan = self.run.plan
        span = Span(
            plan.before_test, plan.before_test_epoch, plan.before_test_iter,
            plan.after_test_iter, plan.after_test_epoch, plan.after_test,
        )  # fmt: skip
        return self._evaluate("test", self.run.test_data, span)

    def predict(self, update: Update, take: Callable[[Run], None]) -> None:
        """Compute the output of every batch to predict, and hand it over; there is no loss."""
        plan = self.run.plan
        span = Span(
            plan.before_predict, plan.before_predict_epoch, plan.before_predict_iter,
            plan.after_predict_iter, plan.after_predict_epoch, plan.after_predict,
        )  # fmt: skip

        def predict_batch(run: Run) -> None:
            update.compute(run)
            fire(span.after_iter, run)
            take(run)

        self._evaluate("predict", self.run.predict_data, span, predict_batch)

    def _evaluate(
        self,
        phase: Phase,
        streams: Mapping[str, Source],
        span: Span,
        predict: Callable[[Run], None] | None = None,
    ) -> Results:
        run = self.run
        if not streams:
            raise DataError(f"There is nothing to evaluate: give {phase}_data=.")
        was_phase, was_training = run.phase, run.model.training
        run.phase = phase
        fire(span.before, run)  # Before the mode changes: hooks may swap in averaged weights here.
        run.model.eval()
        fire(span.before_epoch, run)
        values: dict[str, Tensor | float] = {}
        for name, source in streams.items():
            run.stream = name or phase
            meters = Meters(self.metrics, is_shared=not run.world.is_alone)
            with torch.no_grad():
                self._read(source, span, predict or partial(self._measure, meters, span.after_iter))
                of_stream = {} if predict else self._combine(meters)
            prefix = f"{phase}/{name}" if name else phase
            values |= {f"{prefix}/{metric}": value for metric, value in of_stream.items()}
        results = Results(phase, {})
        if predict is not None and not run.is_interrupted:
            fire(span.after_epoch, run)
        elif not run.is_interrupted:  # Otherwise they belong to a part of the data only.
            self._publish(phase, values)
            live = LiveResults(run.metrics, phase)
            fire(span.after_epoch, run, live)
            results = live.read()  # With what hooks have put meanwhile.
        fire(span.after, run)
        run.phase, run.stream = was_phase, was_phase
        run.model.train(was_training)
        return results

    def _publish(self, phase: Phase, values: Mapping[str, Tensor | float]) -> None:
        """Put the results of an evaluation into the metric store."""
        metrics = self.run.metrics
        metrics.start_epoch(phase)  # Only now: until then the last results can be read.
        for name, value in values.items():
            metrics.put(name, value)
        # Of a stream that was not read yet, nothing is known.
        unread = {f"val/{name}/*" for name, one in self.run.val_data.items() if not one.passes}
        check_were_written(self.run.hooks, phase, [*metrics.names(), *unread])

    def _read(self, source: Source, span: Span, work: Callable[[Run], None]) -> None:
        run, meetings = self.run, self._meetings
        is_shared = not run.world.is_alone
        move = make_transfer(run.device)
        self.batch_number = 0
        meetings.begin(0)
        for read in source.read():
            self.batch_number += 1
            run.batch = read if move is None else move(read)
            shares = source.shares() if is_shared else None
            if shares is not None:
                run.place = Place(self.batch_number, *shares[0])
            if shares is None or shares[0].own:
                fire(span.before_iter, run)
                work(run)
            elif self.forward_together is not None:
                self.forward_together()
            if self.batch_number >= meetings.next:
                meetings.hold(self.batch_number)
            if run.is_interrupted:  # A long validation must not keep a signal waiting.
                break
        if not self.batch_number:
            raise DataError(f"{source.name} is empty: it gave no batch.")

    def _combine(self, meters: Meters) -> dict[str, Tensor | float]:
        meters.combine(self.run.ranks)
        return meters.compute()

    def _measure(self, meters: Meters, after: Calls, run: Run) -> None:
        batch = run.batch
        for update in self.updates:
            run.batch = batch  # Each begins with the batch itself, as in training.
            loss = update.compute(run)
            samples = size_of(run.batch)
            if loss is not None and loss.ndim == 0:  # A step may skip a batch.
                weight = update.weight(run)
                meters.add(update.loss_name, loss, samples if weight is None else weight)
        try:
            meters.update(output_of(run.output), targets_of(run), samples)
        except Exception as error:
            note_error(error, run, run.output)
            raise
        fire(after, run)


@dataclass
class Validation:
    """The times at which the loop validates.

    A run that reaches its end validates there too, unless it just did.

    Args:
        every: Interval in iterations, epochs or time.
        begin: After how much to validate for the first time, in the unit of ``every``.
        at_start: Whether to validate before the first iteration.
        enabled: Whether there is anything to validate on.

    Attributes:
        due: The streams that were found to be due; none of them means all.
    """

    every: Every
    begin: int = 0
    at_start: bool = False
    enabled: bool = True
    last_time: float = 0.0
    due: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.last_time = monotonic()

    def request(self, run: Run) -> None:
        """Request the validation whose time has come."""
        # Clocks differ from rank to rank, so only that of the first one counts.
        is_by_clock = self.every.unit == "seconds"
        if not is_by_clock or run.world.is_main:
            run.validate(*self.due, everywhere=not is_by_clock)

    def note(self, progress: Progress, wanted: Wanted = True) -> None:
        """Record that a validation took place now."""
        progress.validated_at = progress.iter
        self.last_time = monotonic()

    def due_at_start(self, progress: Progress) -> bool:
        """Return whether to validate before the first iteration."""
        return self.enabled and self.at_start and progress.iter == 0 != progress.validated_at

    @property
    def units(self) -> set[Unit]:
        """The units that have to be counted for it."""
        return {self.every.unit} if self.enabled else set()

    @property
    def due_after_iter(self) -> Callable[[Progress], bool] | None:
        """What returns whether to validate after an iteration; None if that never happens."""
        if not self.enabled or self.every.unit == "epochs":
            return None
        if self.every.unit in COUNTED:
            return lambda progress: self.every.due(progress) and self._has_begun(progress)
        return self._due_by_time if self.every.unit == "seconds" else self._due_by_iter

    def _due_by_time(self, progress: Progress) -> bool:
        return monotonic() - self.last_time >= self.every.count

    def _due_by_iter(self, progress: Progress) -> bool:
        return progress.iter % self.every.count == 0 and progress.iter >= self.begin

    def _has_begun(self, progress: Progress) -> bool:
        return self.every.unit == "seconds" or self.every.done(progress) >= self.begin

    def due_after_epoch(self, progress: Progress) -> bool:
        """Return whether to validate after the epoch that was just completed."""
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
        """Return whether a run at its limit still lacks the validation of its last state."""
        return (
            self.enabled
            and progress.is_done
            and progress.validated_at != progress.iter
            and self._has_begun(progress)
        )
