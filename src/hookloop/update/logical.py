"""The parts of one update that this process computes for its logical ranks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from hookloop.data.mixing.mixture import Mixture
from hookloop.data.random.per_sample import SampleGroup, fill_generators, unchanged_generators
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

    def group(self, run: Run, batches: Sequence[object]) -> RankParts:
        """Return the parts of this process's logical ranks."""
        return LogicalParts(self, parts_of(run, batches), run)


class LogicalParts(RankParts):
    """The microbatches of an update, all of one logical rank before those of the next.

    Args:
        reduction: What they are made for.
        parts: Those of all logical ranks of this process, microbatch by microbatch.
        run: The run.
    """

    def __init__(self, reduction: LogicalReduction, parts: Sequence[Part], run: Run) -> None:
        self._leaves = leaves = run.world.leaves
        each = [part.share for part in parts[:: len(leaves)]]  # Each global batch once.
        super().__init__(reduction, parts, each)
        self._sums = reduction.averager
        self._device = run.device

    def __iter__(self) -> Iterator[object]:
        """Yield them, each with the random numbers of its logical rank."""
        sums, step = self._sums, len(self._leaves)
        # Drawn alike by all processes, whose generators are equal between two updates.
        key = int(torch.empty((), dtype=torch.int64).random_())
        group = SampleGroup([*self._leaves], key, self._parts[0].number, self._leaves[0])
        words = group.random_words()
        with unchanged_generators(self._device):
            sums.clear()
            for number, leaf in enumerate(self._leaves):
                sums.start_leaf(leaf)
                fill_generators(words[number], self._device)
                for part in self._parts[number::step]:
                    self._current = part
                    yield part.batch
            sums.finish()


def make_averager(run: Run, update: Update, *, finds_unused: bool, slots: int) -> LogicalAverager:
    """Return what sums the gradients of an update over the logical ranks."""
    modules = [
        one for one in (run.model, run._internals.loss_function) if isinstance(one, nn.Module)
    ]
    return LogicalAverager(
        modules, update.parameters, run.world, finds_unused=finds_unused, slots=slots
    )


def check_logical(run: Run, updates: Sequence[Update], *, is_auto: bool, is_sharded: bool) -> None:
    """Reject what would depend on the number of processes, or cannot be cut.

    Raises:
        ModelError: With what to change.
    """
    reason = ""
    if is_sharded:
        reason = "parallel: {strategy: sharded} keeps parts of the model on each process"
    elif is_auto:
        reason = "accumulate='auto' splits batches where memory runs out: write a number"
    elif isinstance(run.train_data, Mixture):
        reason = "several streams of training data are mixed: give one"
    elif any(type(one).make is not Update.make for one in updates):
        reason = "step= is an Update of your own that makes the update as a whole"
    elif any(isinstance(module, nn.SyncBatchNorm) for module in run.model.modules()):
        reason = "SyncBatchNorm exchanges numbers in the middle of a forward: take BatchNorm"
    if reason:
        raise ModelError(
            f"parallel: {{logical: {run.world.logical}}} does not work here: {reason}.",
            argument="parallel",
        )
