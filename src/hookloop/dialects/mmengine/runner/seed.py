"""``mmengine.runner.set_random_seed``: one seed for all generators."""

from __future__ import annotations

import random

import torch

from hookloop.data.randomness import seed_all


def set_random_seed(
    seed: int | None = None, deterministic: bool = False, diff_rank_seed: bool = False
) -> int:
    """Seed all generators and return the seed; without a seed a random one is drawn."""
    if seed is None:
        # Not from the global generators, which a script may have seeded on purpose.
        seed = random.SystemRandom().randrange(2**31)
    seed_all(seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    return seed
