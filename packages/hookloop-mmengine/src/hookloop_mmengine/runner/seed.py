"""``mmengine.runner.set_random_seed``: one seed for all generators."""

from __future__ import annotations

import random

import torch

from hookloop.dialects import seed_all
from hookloop_mmengine.dist import broadcast_object_list, get_rank


def set_random_seed(
    seed: int | None = None, deterministic: bool = False, diff_rank_seed: bool = False
) -> int:
    """Seed all generators and return the seed; without a seed a random one is drawn.

    With ``diff_rank_seed`` each process seeds its generators with the seed plus its rank.
    """
    if seed is None:
        # Not from the global generators, which a script may have seeded on purpose.
        drawn: list[object] = [random.SystemRandom().randrange(2**31)]
        broadcast_object_list(drawn)  # All processes use that of the first one.
        seed = int(str(drawn[0]))
    seed_all(seed + get_rank() if diff_rank_seed else seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    return seed
