"""``vissl.utils.distributed_utils``: exchange tensors between processes."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.generic.distributed_util import (
    all_reduce_mean,
    all_reduce_sum,
    barrier,
    gather_from_all,
    gather_tensors_from_all,
    get_rank,
    get_world_size,
    is_primary,
)

__all__ = [
    "all_reduce_mean",
    "all_reduce_sum",
    "barrier",
    "gather_from_all",
    "gather_tensors_from_all",
    "get_rank",
    "get_world_size",
    "is_primary",
]
