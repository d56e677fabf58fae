"""Updates on many ranks that are made again from smaller parts when one rank runs out of memory.

A rank that fails within a collective leaves the others waiting. So each rank adds the gradients of
its own parts without the others. Then all of them agree whether everyone succeeded, and average the
gradients in a backward pass of its own, which needs no memory for activations.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

import torch

from hookloop.data.batch import size_of
from hookloop.data.share import Share
from hookloop.data.splitting import split_batch
from hookloop.trainer.memory_split import Moment, note_single_sample
from hookloop.trainer.shared_update import SharedUpdate, shares_of

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.core.update import Update
    from hookloop.data.source import Source
    from hookloop.parallel.replicated import Replica

_log = logging.getLogger("hookloop")


class SharedSplit:
    """Makes an update together with the other ranks; if one runs out of memory, all of them again.

    Args:
        update: What to make.
        replica: Averages its gradients.
        size: The number of ranks.
    """

    def __init__(self, update: Update, replica: Replica, size: int) -> None:
        self._shared = SharedUpdate(update, replica, size)
        self._replica = replica
        self._is_empty = True

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update, with as many parts as the memory of all ranks demands."""
        before, parts = Moment(run), run.progress.split
        # The first rank that does not fit decides for all: the parts are the same everywhere.
        while run.ranks.largest([int(not self._fits(run, batches))])[0]:
            before.restore()
            run.batch = run.output = run.loss = None
            if run.device.type == "cuda":
                torch.cuda.empty_cache()
            run.progress.split *= 2
        if run.progress.split != parts and run.world.is_main:
            _log.warning(
                "Iteration %d ran out of memory on a rank and was made again on all: from now on "
                "each microbatch is split into %d parts.",
                run.progress.iter + 1,
                run.progress.split,
            )
        self._replica.average()
        self._shared.complete(run, is_empty=self._is_empty)

    def _fits(self, run: Run, batches: list[object]) -> bool:
        """Add this rank's gradients; return False if it ran out of memory and may try again."""
        shares = shares_of(run)
        parts = _split(run, batches, shares)
        try:
            self._is_empty = self._shared.add_gradients(run, parts, shares, averages=False)
        except torch.OutOfMemoryError as error:
            if max(size_of(part) for part, _, _ in parts) <= 1:
                note_single_sample(error)
                raise
            for batch in batches:
                split_batch(batch, 2 * run.progress.split)  # Raises if that cannot be done.
            return False
        return True


def _split(run: Run, batches: list[object], shares: list[Share]) -> list[tuple[object, Share, int]]:
    """Return the parts of the microbatches, each with its share and the number of its batch."""
    last, parts = cast("Source", run.train_data).position, run.progress.split
    found: list[tuple[object, Share, int]] = []
    for number, (batch, share) in enumerate(zip(batches, shares, strict=True), 1 - len(batches)):
        pieces = split_batch(batch, parts) if parts > 1 and share.own else [batch]
        for piece in pieces:
            own = share if len(pieces) == 1 else Share(size_of(piece), share.total)
            found.append((piece, own, last + number))
    return found
