"""Seeding, as scripts ask Lightning for it."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_everything(seed: int | None = None, workers: bool = False, verbose: bool = True) -> int:
    """Seed Python, NumPy and torch; ``Trainer(seed=...)`` does it when training starts.

    >>> seed_everything(7)
    7
    """
    chosen = 0 if seed is None else seed
    random.seed(chosen)
    np.random.seed(chosen)
    torch.manual_seed(chosen)
    return chosen
