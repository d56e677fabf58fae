"""``mmengine.dataset.utils``: the collate functions, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.dataset.collate import (
    default_collate,
    pseudo_collate,
    worker_init_fn,
)
from hookloop_mmengine.registry import FUNCTIONS as COLLATE_FUNCTIONS

__all__ = ["COLLATE_FUNCTIONS", "default_collate", "pseudo_collate", "worker_init_fn"]
