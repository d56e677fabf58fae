"""``mmengine.dist.dist``: what processes exchange, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.dist.exchange import (
    all_gather,
    all_gather_object,
    all_reduce,
    all_reduce_dict,
    broadcast,
    broadcast_object_list,
    sync_random_seed,
)
from hookloop_mmengine.dist.results import collect_results

__all__ = [
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_reduce_dict",
    "broadcast",
    "broadcast_object_list",
    "collect_results",
    "sync_random_seed",
]
