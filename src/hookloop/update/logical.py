"""The parts of one update that this process computes for its logical ranks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from hookloop.data.random.per_sample import seed_process
from hookloop.errors import ModelError
from hookloop.parallel.logical import LogicalAverager
from hookloop.update.reduction import Part, RankParts, Reduction, parts_of
from hookloop.update.update import Update

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class LogicalReduction(Reduction):
    """Makes an update whose bits do not depend on the number of processes.

    Args:
        update: What to make.
        averager: Sums its gradients; their factors make the sum a mean.
        run: The run.
    """

    averager: LogicalAverager

    def __init__(self, update: Update, averager: LogicalAverager, run: Run) -> None:
        super().__init__(update, averager, 1)
        self.cuts = run.world.logical

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update from the parts of this process's logical ranks."""
        parts = LogicalParts(self, parts_of(run, batches), run.world.leaves)
        update = self.update
        try:
            made = update.add_gradients(run, batches, parts) and parts.close(run)
        finally:
            parts.leave()
        if made:
            update.finish(run)
        else:
            update.note_no_loss(run)


class LogicalParts(RankParts):
    """The microbatches of an update, all of one logical rank before those of the next.

    Args:
        reduction: What they are made for.
        parts: Those of all logical ranks of this process, microbatch by microbatch.
        leaves: These logical ranks.
    """

    def __init__(self, reduction: LogicalReduction, parts: Sequence[Part], leaves: range) -> None:
        each = [part.share for part in parts[:: len(leaves)]]  # Each global batch once.
        super().__init__(reduction, parts, each)
        self._sums = reduction.averager
        self._leaves = leaves

    def __iter__(self) -> Iterator[object]:
        """Yield them; the generators of the process are those of each logical rank meanwhile."""
        sums, step = self._sums, len(self._leaves)
        sums.clear()
        for number, leaf in enumerate(self._leaves):
            sums.start_leaf(leaf)
            for part in self._parts[number::step]:
                self._current = part
                yield part.batch
        sums.finish()

    def leave(self) -> None:
        """Give the process its generators back."""
        self._sums.leave()


def make_averager(run: Run, update: Update, *, finds_unused: bool, slots: int) -> LogicalAverager:
    """Return what sums the gradients of an update over the logical ranks."""
    modules = [one for one in (run.model, run.loss_function) if isinstance(one, nn.Module)]
    return LogicalAverager(
        modules,
        update.parameters(),
        run.world,
        seed=seed_for(run.device),
        finds_unused=finds_unused,
        slots=slots,
    )
