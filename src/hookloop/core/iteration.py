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
from hookloop.core.update import Update
from hookloop.data.description import note_batch
from hookloop.data.microbatches import Microbatches, replace_batch

Compute = Callable[[Update], Tensor | None]


def make_compute(run: Run, autocast: AbstractContextManager[None] | None) -> Compute:
    """Return what computes a update's output and loss, in every phase; hooks may replace them."""

    def compute(update: Update) -> Tensor | None:
        plan = run.plan
        if calls := plan.before_forward:
            fire(calls, run)
        try:
            run.output = update.forward(run)
        except Exception as error:
            note_batch(error, run.phase, run.progress.iter, run.batch)
            raise
        if calls := plan.after_forward:
            fire(calls, run)
        try:
            run.loss = update.loss_of(run)
        except Exception as error:
            note_batch(error, run.phase, run.progress.iter, run.batch, run.output)
            raise
        if calls := plan.after_loss:
            fire(calls, run)
        return run.loss

    if autocast is None:  # Full precision is spared the context, which costs a third of a us.
        return compute

    def compute_in_lower_precision(update: Update) -> Tensor | None:
        with autocast:
            return compute(update)

    return compute_in_lower_precision


class Iteration:
    """Makes iterations: an update per update.

    Args:
        run: The run; its counters and current values are written here.
        updates: The updates, one after the other.
        compute: How output and loss of a update are computed.
    """

    def __init__(self, run: Run, updates: list[Update], compute: Compute) -> None:
        self.run = run
        self.updates = updates
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
        """Make the update, or those of several updates."""
        for update in self.updates:
            self._take(update, batches)

    def end(self) -> None:
        """Count what is done."""
        run, progress = self.run, self.run.progress
        progress.iter += 1
        progress.iter_in_epoch += 1
        if calls := run.plan.after_train_iter:
            fire(calls, run)

    def _take(self, update: Update, batches: list[object]) -> None:
        """Take a update; the step may have no use for it now, then there is no update."""
        run = self.run
        update.zero_grad()
        group = None if len(batches) == 1 else Microbatches(batches, sums=update.sums)
        for batch in batches:
            run.batch = batch
            loss = self.compute(update)
            if loss is None:
                continue
            if group is None:
                update.record(run, loss)
            else:
                update.begin(run, loss)
                loss = group.share(loss, update.weight(run), run.batch, run.output)
            update.backward(loss)
            if calls := run.plan.after_backward:
                fire(calls, run)
        if loss is None if group is None else group.is_empty:
            return
        if group is not None:
            update.complete(run, group)
        if update.scaler is not None:
            update.unscale()
        if calls := run.plan.before_update:
            fire(calls, run)
        update.apply(run)
        if calls := run.plan.after_update:
            fire(calls, run)
