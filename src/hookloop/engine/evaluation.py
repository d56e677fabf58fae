"""Validation, test, prediction: every stream once, between the points of the phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from hookloop.checkpoint.state.modules import keep_buffers, modules_of
from hookloop.data.batch import size_of
from hookloop.data.ranks.place import Place
from hookloop.data.reading.current import nothing_read
from hookloop.data.stream import Stream
from hookloop.data.transfer import make_transfer
from hookloop.engine.checks import check_were_written
from hookloop.engine.outputs import note_error, output_of, targets_of
from hookloop.engine.plan import Calls, fire
from hookloop.engine.run import Phase, Run
from hookloop.engine.sync_points import SyncPoints
from hookloop.errors import DataError
from hookloop.metrics.meters import Meters, Metric
from hookloop.metrics.results import LiveResults, Results
from hookloop.metrics.weighted import Weight, zero_if_uncounted
from hookloop.requests import Wanted


class Computes(Protocol):
    """What an evaluation asks of an update: output and loss, as in training."""

    loss_name: str
    forward: Callable[[Run], object]
    computation: Callable[[Run], Tensor | None]

    def weight(self, run: Run) -> Weight | None:
        """Return what the step says the batch counts for, or None if it does not say."""

    def numbers(self, run: Run) -> dict[str, Tensor | float]:
        """Return the numbers beside the loss in what a step, or the model, returned."""


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

    def __init__(
        self, run: Run, updates: Sequence[Computes], metrics: Mapping[str, Metric]
    ) -> None:
        self.run = run
        self.updates = updates
        self.metrics = metrics
        self.batch_number = 0  # In its stream, for messages.
        self._sync_points = SyncPoints(run)

    def validate(self, wanted: Wanted = True) -> Results:
        """Run every validation stream once, or those that are wanted."""
        plan, streams = self.run._plan, self.run.val_data
        if isinstance(wanted, frozenset):
            streams = {name: one for name, one in streams.items() if name in wanted}
        span = Span(
            plan.before_val, plan.before_val_epoch, plan.before_val_iter,
            plan.after_val_iter, plan.after_val_epoch, plan.after_val,
        )  # fmt: skip
        return self._evaluate("val", streams, span)

    def test(self) -> Results:
        """Run every test stream once."""
        plan = self.run._plan
        span = Span(
            plan.before_test, plan.before_test_epoch, plan.before_test_iter,
            plan.after_test_iter, plan.after_test_epoch, plan.after_test,
        )  # fmt: skip
        return self._evaluate("test", self.run._internals.test_data, span)

    def predict(self, update: Computes, take: Callable[[Run], None]) -> None:
        """Compute the output of every batch to predict, and hand it over; there is no loss."""
        plan = self.run._plan
        span = Span(
            plan.before_predict, plan.before_predict_epoch, plan.before_predict_iter,
            plan.after_predict_iter, plan.after_predict_epoch, plan.after_predict,
        )  # fmt: skip

        def predict_batch(run: Run) -> None:
            run.with_model(partial(update.computation, run))
            fire(span.after_iter, run)
            take(run)

        self._evaluate("predict", self.run._internals.predict_data, span, predict_batch, [update])

    def _evaluate(
        self,
        phase: Phase,
        streams: Mapping[str, Stream],
        span: Span,
        predict: Callable[[Run], None] | None = None,
        updates: Sequence[Computes] | None = None,
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
        for name, stream in streams.items():
            run.stream = name or phase
            meters = Meters(self.metrics, run.world)
            with torch.no_grad():
                work = predict or partial(self._measure, meters, span.after_iter)
                if run.world.logical:
                    work = _from_same_buffers(work, run)
                self._read(stream, span, work, updates or self.updates, None if predict else meters)
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

    def _read(
        self,
        stream: Stream,
        span: Span,
        work: Callable[[Run], None],
        updates: Sequence[Computes],
        meters: Meters | None,
    ) -> None:
        run, sync_points = self.run, self._sync_points
        is_shared = run.world.cuts_batches
        move = make_transfer(run.device)
        self.batch_number = 0
        sync_points.begin(0)
        parts = stream.parts_of_batch
        for count, read in enumerate(stream.read()):
            part = count % parts  # Of those that the logical ranks of this process have.
            self.batch_number += part == 0
            if meters is not None:
                meters.part = part
            run.batch = read if move is None else move(read)
            shares = stream.shares() if is_shared else None
            if shares is not None:
                run.place = Place(self.batch_number, *shares[0])
            if shares is None or shares[0].own:
                fire(span.before_iter, run)
                work(run)
            elif run._internals.shards is not None:
                # A rank that has no part of a batch helps the others to gather the parameters.
                for update in updates:
                    run.with_model(partial(update.forward, run))
            if part == parts - 1 and self.batch_number >= sync_points.next:
                sync_points.hold(self.batch_number)
            if run.is_interrupted:  # A long validation must not keep a signal waiting.
                break
        if not self.batch_number:
            raise nothing_read(stream.data, stream.name, stream.passes)

    def _combine(self, meters: Meters) -> dict[str, Tensor | float]:
        meters.combine(self.run._internals.ranks)
        return meters.compute()

    def _measure(self, meters: Meters, after: Calls, run: Run) -> None:
        batch = run.batch
        for update in self.updates:
            run.batch = batch  # Each begins with the batch itself, as in training.
            loss = run.with_model(partial(update.computation, run))
            samples = size_of(run.batch)
            weight = update.weight(run)
            counts = samples if weight is None else weight
            if loss is not None and loss.ndim == 0:  # A step may skip a batch.
                if weight is not None:
                    loss = zero_if_uncounted(loss, weight)
                meters.add(update.loss_name, loss, counts)
            for name, value in update.numbers(run).items():
                if name not in self.metrics:  # A metric is computed from the output instead.
                    meters.add(name, value, counts)
        try:
            meters.update(output_of(run.output), targets_of(run), samples)
        except Exception as error:
            note_error(error, run, run.output)
            raise
        fire(after, run)


def _from_same_buffers(work: Callable[[Run], None], run: Run) -> Callable[[Run], None]:
    """Let each part of the data begin with the same buffers, whichever parts a process has."""
    put_back = keep_buffers(modules_of(run.model, run._internals.loss_function))

    def working(run: Run) -> None:
        work(run)
        put_back()

    return working
