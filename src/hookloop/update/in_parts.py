"""Updates that are made again from smaller parts when they run out of memory.

On many ranks, one that fails within a collective would leave the others waiting. So each rank adds
the gradients of its own parts without the others. Then all of them agree whether everyone
succeeded, and average the gradients in a backward pass of its own, which needs no memory for
activations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch

from hookloop.data.batch import count_samples, size_of
from hookloop.data.description import describe
from hookloop.data.mixing.mixture import Mixture
from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Share
from hookloop.errors import DataError, ModelError
from hookloop.update.microbatches import Microbatches
from hookloop.update.reduction import Part, RankParts, Reduction, parts_of
from hookloop.update.update import Group, Update

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.parallel.replicated import Replica

Keep = Callable[[], Callable[[], None]]
"""Copies what an update may have to put back, and returns what does it."""

_log = logging.getLogger("hookloop")


def check_parts(run: Run, updates: Sequence[Update], *, is_sharded: bool) -> None:
    """Reject ``accumulate="auto"`` where an update cannot be repeated.

    Raises:
        ModelError: If one cannot.
    """
    if not run.world.is_alone and (reason := _why_not_on_ranks(run, is_sharded)):
        raise ModelError(
            f"accumulate='auto' does not work on {run.world.size} ranks {reason}. Write a number.",
            argument="accumulate",
        )
    if any(type(update).make is not Update.make or update.keeps_gradients for update in updates):
        raise ModelError(
            "accumulate='auto' would have no effect: step= is an Update of your own, which "
            "decides itself what to repeat. Write a number.",
            argument="accumulate",
        )


def _why_not_on_ranks(run: Run, is_sharded: bool) -> str | None:
    """Return what ranks would wait for in the middle of a forward, or cannot split."""
    if is_sharded:
        return (
            "with a sharded model: its forward needs all ranks, so one that runs out of memory "
            "leaves the others waiting"
        )
    if any(isinstance(module, torch.nn.SyncBatchNorm) for module in run.model.modules()):
        return (
            "with SyncBatchNorm: its forward needs all ranks, so one that runs out of memory "
            "leaves the others waiting"
        )
    if isinstance(run.train_data, Mixture) and run.train_data.way.is_zipped:
        return f"with mix='{run.train_data.way.name}', whose streams have parts of different sizes"
    return None


def _make_until_it_fits(
    run: Run, keep: Keep, fits: Callable[[], bool], where: tuple[str, str]
) -> None:
    """Add the gradients of an iteration, in as many parts as memory demands.

    In how many parts microbatches are split is kept in ``run.progress.split``, for the iterations
    that follow and for a resume.
    """
    put_back, parts = keep(), run.progress.split
    while not fits():
        put_back()
        run.batch = run.output = run.loss = None
        if run.device.type == "cuda":
            torch.cuda.empty_cache()
        run.progress.split *= 2
    if run.progress.split != parts and run.world.is_main:
        _log.warning(
            "Iteration %d ran out of memory%s and was made again%s: from now on each microbatch "
            "is split into %d parts.",
            run.progress.iter + 1,
            *where,
            run.progress.split,
        )


def _check_smaller(
    error: torch.OutOfMemoryError, batches: Sequence[object], sizes: Sequence[int], parts: int
) -> None:
    """Raise the error if smaller parts would not help, or cannot be made."""
    if max(sizes) <= 1:
        error.add_note("a single sample does not fit into memory, so no split helps")
        raise error
    for batch in batches:
        split_batch(batch, 2 * parts)


class InParts:
    """Makes an update; when memory runs out, again from its beginning, with smaller microbatches.

    Args:
        update: What to make.
        keep: Copies what a forward may change besides gradients; returns what puts it back.
    """

    def __init__(self, update: Update, keep: Keep) -> None:
        self._update = update
        self._keep = keep
        self._group: Group | None = None

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update, with as many parts as memory demands."""
        _make_until_it_fits(run, self._keep, lambda: self._fits(run, batches), ("", ""))
        group, self._group = cast("Group", self._group), None
        try:
            is_made = group.close(run)
            if is_made:
                self._update.finish(run)
        except torch.OutOfMemoryError as error:
            error.add_note(
                "the gradients were complete, so smaller microbatches would not help: the "
                "optimizer or a hook needs the memory"
            )
            raise
        if not is_made:
            self._update.note_no_loss(run)

    def _fits(self, run: Run, batches: list[object]) -> bool:
        """Add the gradients; return False if memory ran out and smaller parts can be tried."""
        count = run.progress.split
        parts = batches
        if count > 1:
            parts = [part for batch in batches for part in split_batch(batch, count)]
        # Weighted also if it is one: what is recorded then comes after everything that may fail.
        self._group = Microbatches(self._update, parts)
        try:
            self._update.add_gradients(run, parts, self._group)
        except torch.OutOfMemoryError as error:
            self._update.zero_grad()
            _check_smaller(error, batches, [size_of(part) for part in parts], count)
            return False
        return True


class InPartsOnRanks:
    """Makes an update together with the other ranks; if one runs out of memory, all of them again.

    Args:
        reduction: What is made.
        keep: As for `InParts`.
    """

    def __init__(self, reduction: Reduction, keep: Keep) -> None:
        self._reduction = reduction
        self._keep = keep
        self._group: RankParts | None = None

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update, with as many parts as the memory of all ranks demands."""
        # The first rank that does not fit decides for all: the parts are the same everywhere.
        _make_until_it_fits(
            run,
            self._keep,
            lambda: not run._internals.ranks.largest([int(not self._fits(run, batches))])[0],
            (" on a rank", " on all"),
        )
        group, self._group = cast("RankParts", self._group), None
        cast("Replica", self._reduction.averager).average()
        update = self._reduction.update
        if group.close(run):
            update.finish(run)
        else:
            update.note_no_loss(run)

    def _fits(self, run: Run, batches: list[object]) -> bool:
        """Add this rank's gradients; return False if memory ran out and it may try again."""
        whole, count = parts_of(run, batches), run.progress.split
        parts = [part for one in whole for part in _split(one, count)]
        shares = [one.share for one in whole]
        self._group = RankParts(self._reduction, parts, shares, averages=False)
        try:
            self._reduction.update.add_gradients(run, batches, self._group)
        except torch.OutOfMemoryError as error:
            _check_smaller(error, batches, [size_of(part.batch) for part in parts], count)
            return False
        return True


def _split(one: Part, count: int) -> list[Part]:
    """Return the parts of a microbatch, each with its share."""
    pieces = split_batch(one.batch, count) if count > 1 and one.share.own else [one.batch]
    if len(pieces) == 1:
        return [one]
    total = one.share.total
    return [one._replace(batch=piece, share=Share(size_of(piece), total)) for piece in pieces]


class _Part(Cut):
    """One of the parts of a batch; it is cut as a rank cuts its own."""

    def _error(self, what: str) -> DataError:
        return DataError(
            f"A batch does not fit into memory, and it cannot be split: {what}. Make the batches "
            "smaller and write accumulate= as a number, or give batches of tensors, lists and "
            "mappings whose first dimension is that of the samples.",
            argument="accumulate",
        )


def split_batch(batch: object, parts: int) -> list[object]:
    """Split a batch into so many parts, as equal as possible; none is without a sample.

    Tensors, arrays and lists of samples are cut, whatever they are nested in.

    Raises:
        DataError: If something in the batch belongs to the samples in a way that is not known.

    >>> import torch
    >>> [part["x"].tolist() for part in split_batch({"x": torch.arange(5)}, 2)]
    [[0, 1, 2], [3, 4]]
    """
    count = count_samples(batch)
    if count is None:
        raise _Part(0, 1)._error(f"nothing in {describe(batch)} can be counted")
    number = max(1, min(parts, count))
    return [_Part(index, number).batch(batch) for index in range(number)]
