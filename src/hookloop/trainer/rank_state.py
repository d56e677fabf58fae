"""What a checkpoint holds of each rank: its random numbers, and buffers that differ."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch

from hookloop.data.randomness import Randomness, seed_rank
from hookloop.trainer.checkpoint_schema import restoring

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")


def state_of_ranks(run: Run) -> dict[str, object]:
    """Collect what differs from rank to rank."""
    own = Randomness.now().state
    if run.world.is_alone or run.ranks.is_broken:  # A rank that failed speaks for itself alone.
        return {"rng": [own]}
    of_ranks = run.ranks.gather((own, own_buffers(run.model)))
    parts: dict[str, object] = {
        "rng": [rng for rng, _ in of_ranks],
        "world": {"size": run.world.size},
    }
    if own_buffers(run.model):
        parts["buffers"] = [buffers for _, buffers in of_ranks]
    return parts


def own_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that each rank computes from its part of a batch."""
    return {
        name: buffer.detach().cpu()
        for name, buffer in model.named_buffers()
        if buffer.is_floating_point()
    }


def restore_buffers(run: Run, checkpoint: Mapping[str, object], label: str) -> None:
    """Give each rank its own buffers back; on another number of ranks, their mean."""
    saved = cast("list[dict[str, torch.Tensor]]", checkpoint.get("buffers") or [])
    if not saved:
        return
    with restoring("buffers", label), torch.no_grad():
        for name, buffer in run.model.named_buffers():
            if name in saved[0]:
                of_ranks = [buffers[name] for buffers in saved]
                if len(saved) == run.world.size:
                    buffer.copy_(of_ranks[run.world.rank])
                else:
                    buffer.copy_(torch.stack(of_ranks).double().mean(0))


def randomness_of_rank(run: Run, checkpoint: Mapping[str, object], label: str) -> Randomness:
    """Return the random numbers of a rank, after checking that they can be restored."""
    # A generator checks its state only when it is set. So each is set for a trial, and set back.
    now = Randomness.now()
    rank, size = run.world.rank, run.world.size
    with restoring("random numbers", label):
        saved = cast("list[dict[str, object]]", checkpoint["rng"])
        is_same = len(saved) == size
        found = Randomness(saved[rank if is_same else 0])
        try:
            found.restore()
            if not is_same and rank:  # Each rank draws other numbers than all ranks before.
                seed_rank(rank)
                found = Randomness.now()
        finally:
            now.restore()
    if not is_same:
        _log.warning(
            "'%s' was made on %s and continues on %s: the global batches stay the same; random "
            "numbers that each rank draws for itself, such as those of dropout, do not.",
            label,
            _ranks(len(saved)),
            _ranks(size),
        )
    return found


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"
