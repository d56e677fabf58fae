"""Validation and test: every stream once, with the mount points of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hookloop.core.contract import check_written
from hookloop.core.iteration import Compute
from hookloop.core.plan import Calls, fire
from hookloop.core.run import Phase, Run
from hookloop.core.turn import Turn, output_of, targets_of
from hookloop.data.batch import size_of
from hookloop.data.description import note_batch
from hookloop.data.prefetch import mover_of
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


class Evaluation:
    """Evaluates the model of a run.

    Args:
        run: The run.
        turns: What computes output and loss.
        metrics: What is computed besides the loss.
        compute: How a turn is computed.
    """

    def __init__(
        self, run: Run, turns: list[Turn], metrics: Mapping[str, Metric], compute: Compute
    ) -> None:
        self.run = run
        self.turns = turns
        self.metrics = metrics
        self.compute = compute
        self.batch_number = 0  # In its stream, for messages.

    def validate(self) -> dict[str, float]:
        """Run every validation stream once."""
        plan = self.run.plan
        span = Span(
            plan.before_val,
            plan.before_val_epoch,
            plan.before_val_iter,
            plan.after_val_iter,
            plan.after_val_epoch,
            plan.after_val,
        )
        return self._evaluate("val", self.run.val_data, span)

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
            metrics = run.metrics.stream(phase) | metrics  # With what hooks computed besides.
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
        move = mover_of(run.device)
        self.batch_number = 0
        for read in source.read():
            self.batch_number += 1
            run.batch = read if move is None else move(read)
            fire(span.before_iter, run)
            batch = run.batch
            for turn in self.turns:
                run.batch = batch  # Each begins with the batch itself, as in training.
                loss = self.compute(turn)
                samples = size_of(run.batch)
                if loss is not None and loss.ndim == 0:
                    weight = turn.weight(run)
                    meters.add(turn.loss_name, loss, samples if weight is None else weight)
            try:
                meters.update(output_of(run.output), targets_of(run.batch), samples)
            except Exception as error:
                note_batch(error, run.phase, run.progress.iter, run.batch, run.output)
                raise
            fire(span.after_iter, run)
            if run.is_interrupted:
                break
        if not self.batch_number:
            raise DataError(f"{source.name} is empty: it gave no batch.")
        return meters.compute()
