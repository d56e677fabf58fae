"""``mmengine.dist``: the processes that train together, and what they exchange."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.dist.exchange import (
    all_gather,
    all_gather_object,
    all_reduce,
    all_reduce_dict,
    broadcast,
    broadcast_object_list,
    sync_random_seed,
)
from hookloop_mmengine.dist.processes import (
    barrier,
    get_backend,
    get_default_group,
    get_dist_info,
    get_local_rank,
    get_local_size,
    get_rank,
    get_world_size,
    infer_launcher,
    init_dist,
    is_distributed,
    is_main_process,
    master_only,
)
from hookloop_mmengine.dist.results import collect_results
from hookloop_mmengine.missing import reject

__all__ = [
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_reduce_dict",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "collect_results",
    "get_backend",
    "get_default_group",
    "get_dist_info",
    "get_local_rank",
    "get_local_size",
    "get_rank",
    "get_world_size",
    "infer_launcher",
    "init_dist",
    "is_distributed",
    "is_main_process",
    "master_only",
    "sync_random_seed",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
