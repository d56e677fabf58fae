"""One iteration: the hot path, in one file.

Everything here runs once per microbatch, next to a forward and backward pass that on a small model
take a few hundred microseconds. What looks odd has its reason:

- A point at which nobody acts is skipped by looking at its tuple of calls, ``if calls := ...``:
  a call of `fire` that finds nothing to do would cost three times as much, seven times over.
- The plan is looked up at each firing and not once per epoch, because a hook that fails is taken
  out of it, and others join it, in the middle of an epoch.
- Nothing is read from the device: the loss is recorded as the tensor it is.

``docs/speed.md`` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from torch import Tensor

from hookloop.core.plan import fire
from hookloop.core.run import Run
from hookloop.core.turn import Turn
from hookloop.data.description import note_batch
from hookloop.data.microbatches import Microbatches, replace_batch

Compute = Callable[[Turn], Tensor | None]


def make_compute(run: Run, autocast: AbstractContextManager[None] | None) -> Compute:
    """Return what computes a turn's output and loss, in every phase; hooks may replace them."""

    def compute(turn: Turn) -> Tensor | None:
        plan = run.plan
        if calls := plan.before_forward:
            fire(calls, run)
        try:
            run.output = turn.forward(run)
        except Exception as error:
            note_batch(error, run.phase, run.progress.iter, run.batch)
            raise
        if calls := plan.after_forward:
            fire(calls, run)
        try:
            run.loss = turn.loss_of(run)
        except Exception as error:
            note_batch(error, run.phase, run.progress.iter, run.batch, run.output)
            raise
        if calls := plan.after_loss:
            fire(calls, run)
        return run.loss

    if autocast is None:  # Full precision is spared the context, which costs a third of a us.
        return compute

    def compute_in_lower_precision(turn: Turn) -> Tensor | None:
        with autocast:
            return compute(turn)

    return compute_in_lower_precision


class Iteration:
    """Makes iterations: an update per turn.

    Args:
        run: The run; its counters and current values are written here.
        turns: The updates, one after the other.
        compute: How output and loss of a turn are computed.
    """

    def __init__(self, run: Run, turns: list[Turn], compute: Compute) -> None:
        self.run = run
        self.turns = turns
        self.compute = compute

    def begin(self, batches: list[object]) -> None:
        """Begin with a group of microbatches."""
        run, progress = self.run, self.run.progress
        run.metrics.moment = (progress.iter + 1, progress.epoch)
        run.batch = batches[0]
        if calls := run.plan.before_train_iter:
            fire(calls, run)
            if run.batch is not batches[0]:
                replace_batch(batches, run.batch)

    def make(self, batches: list[object]) -> None:
        """Make the update, or those of several turns."""
        for turn in self.turns:
            self._take(turn, batches)

    def end(self) -> None:
        """Count what is done."""
        run, progress = self.run, self.run.progress
        progress.iter += 1
        progress.iter_in_epoch += 1
        if calls := run.plan.after_train_iter:
            fire(calls, run)

    def _take(self, turn: Turn, batches: list[object]) -> None:
        """Take a turn; the step may have no use for it now, then there is no update."""
        run = self.run
        turn.zero_grad()
        group = None if len(batches) == 1 else Microbatches(batches, sums=turn.sums)
        for batch in batches:
            run.batch = batch
            loss = self.compute(turn)
            if loss is None:
                continue
            if group is None:
                turn.record(run, loss)
            else:
                turn.begin(run, loss)
                loss = group.share(loss, turn.weight(run), run.batch, run.output)
            turn.backward(loss)
            if calls := run.plan.after_backward:
                fire(calls, run)
        if loss is None if group is None else group.is_empty:
            return
        if group is not None:
            turn.complete(run, group)
        if turn.scaler is not None:
            turn.unscale()
        if calls := run.plan.before_update:
            fire(calls, run)
        turn.update(run)
        if calls := run.plan.after_update:
            fire(calls, run)
