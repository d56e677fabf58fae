"""``mmengine.dist.utils``: the processes and their devices, under the name that files import."""

from __future__ import annotations

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

__all__ = [
    "barrier",
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
]
