"""Updates that are made again from smaller parts when they run out of memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hookloop.core.update import Update
from hookloop.data.batch import size_of
from hookloop.data.microbatches import Microbatches
from hookloop.data.randomness import Randomness
from hookloop.data.splitting import split_batch
from hookloop.data.train_streams import TrainStreams
from hookloop.errors import ModelError

if TYPE_CHECKING:
    from hookloop.core.loop import Loop
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")


def split_updates(loop: Loop, *, is_sharded: bool = False) -> None:
    """Let updates be made again from smaller parts, if ``accumulate="auto"`` asks for it.

    On many ranks that is only checked here, because they share their updates later.

    Raises:
        ModelError: If the updates cannot be repeated.
    """
    if not loop.sizes.is_auto:
        return
    if not loop.run.world.is_alone and (reason := _why_not_on_ranks(loop.run, is_sharded)):
        raise ModelError(
            f"accumulate='auto' does not work on {loop.run.world.size} ranks {reason}. Write a "
            "number.",
            argument="accumulate",
        )
    for number, update in enumerate(loop.updates):
        if type(update).make is not Update.make or update.keeps_gradients:
            raise ModelError(
                "accumulate='auto' would have no effect: step= is an Update of your own, which "
                "decides itself what to repeat. Write a number.",
                argument="accumulate",
            )
        if not update.may_repeat and loop.run.world.is_alone:
            loop.makes[number] = SplitUpdate(update).make


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
    if isinstance(run.train_data, TrainStreams) and run.train_data.way in ("zip", "cycle"):
        return f"with mix='{run.train_data.way}', whose streams have parts of different sizes"
    return None


class SplitUpdate:
    """Makes an update; when memory runs out, again from its beginning, with smaller microbatches.

    In how many parts microbatches are split is kept in ``run.progress.split``, for the iterations
    that follow and for a resume.

    Args:
        update: What to make.
    """

    def __init__(self, update: Update) -> None:
        self._update = update
        self._is_complete = False
        update.may_repeat = True
        complete = update.complete

        def note_complete(run: Run, group: Microbatches) -> None:
            self._is_complete = True
            complete(run, group)

        update.complete = note_complete  # type: ignore[method-assign]

    def make(self, run: Run, batches: list[object]) -> None:
        """Make the update, with as many parts as memory demands."""
        before, parts = Moment(run), run.progress.split
        while not self._fits(run, batches):
            before.restore()
            self._update.zero_grad()
            run.batch = run.output = run.loss = None
            if run.device.type == "cuda":
                torch.cuda.empty_cache()
            run.progress.split *= 2
        if run.progress.split != parts:
            _log.warning(
                "Iteration %d ran out of memory and was made again: from now on each microbatch "
                "is split into %d parts.",
                run.progress.iter + 1,
                run.progress.split,
            )

    def _fits(self, run: Run, batches: list[object]) -> bool:
        """Make the update; return False if it ran out of memory and can be made again."""
        self._is_complete = False
        parts = _split_all(batches, run.progress.split)
        try:
            self._update.make(run, parts)
        except torch.OutOfMemoryError as error:
            if self._is_complete:
                error.add_note(
                    "the gradients were complete, so smaller microbatches would not help: the "
                    "optimizer or a hook needs the memory"
                )
                raise
            if max(map(size_of, parts)) <= 1:
                note_single_sample(error)
                raise
            _split_all(batches, 2 * run.progress.split)  # Raises if that cannot be done.
            return False
        return True


def note_single_sample(error: torch.OutOfMemoryError) -> None:
    """Add to an error that smaller parts would not help."""
    error.add_note("a single sample does not fit into memory, so no split helps")


def _split_all(batches: list[object], parts: int) -> list[object]:
    if parts == 1:
        return batches
    return [part for batch in batches for part in split_batch(batch, parts)]


class Moment:
    """What a forward may change besides gradients: random numbers and buffers.

    Args:
        run: The run, as it is now.
    """

    def __init__(self, run: Run) -> None:
        self._randomness = Randomness.now()
        roots = [run.model]
        if isinstance(run.loss_function, torch.nn.Module):
            roots.append(run.loss_function)
        self._buffers: list[tuple[torch.nn.Module, str, Tensor, Tensor]] = [
            (module, name, buffer, buffer.detach().clone())
            for root in roots
            for module in root.modules()
            for name, buffer in module.named_buffers(recurse=False)
        ]

    def restore(self) -> None:
        """Go back to it."""
        self._randomness.restore()
        with torch.no_grad():
            for module, name, buffer, value in self._buffers:
                # A forward may have put another tensor in its place, as well as changed it.
                setattr(module, name, buffer.copy_(value))
