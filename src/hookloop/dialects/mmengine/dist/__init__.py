"""``mmengine.dist``: who this process is among those that train together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
import torch.distributed
from torch import Tensor

from hookloop.parallel.reduce import mean_over_ranks

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "all_reduce_dict",
    "all_reduce_params",
    "barrier",
    "broadcast_object_list",
    "collect_results",
    "get_dist_info",
    "get_rank",
    "get_world_size",
    "infer_launcher",
    "init_dist",
    "is_distributed",
    "is_main_process",
    "master_only",
    "sync_random_seed",
]


def is_distributed() -> bool:
    """Tell whether there are several processes."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_rank(group: object = None) -> int:
    """Return the number of this process."""
    return torch.distributed.get_rank() if is_distributed() else 0


def get_world_size(group: object = None) -> int:
    """Return how many processes there are."""
    return torch.distributed.get_world_size() if is_distributed() else 1


def get_dist_info(group: object = None) -> tuple[int, int]:
    """Return both."""
    return get_rank(), get_world_size()


def is_main_process(group: object = None) -> bool:
    """Tell whether this process writes files and talks to the user."""
    return get_rank() == 0


def master_only(func: Callable[P, R]) -> Callable[P, R | None]:
    """Let a function do nothing in other processes than the main one."""

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        return func(*args, **kwargs) if is_main_process() else None

    return wrapper


def barrier(group: object = None) -> None:
    """Wait for all processes."""
    if is_distributed():
        torch.distributed.barrier()


def init_dist(launcher: str, backend: str = "nccl", **kwargs: object) -> None:
    """Begin to work together; hookloop does this itself when a launcher started it."""
    if launcher != "none" and not is_distributed():
        torch.distributed.init_process_group(backend)


def infer_launcher() -> str:
    """Tell how this process was started."""
    return "pytorch" if torch.distributed.is_torchelastic_launched() else "none"


def all_reduce_params(
    params: list[Tensor], coalesce: bool = True, bucket_size_mb: int = -1, op: str = "sum"
) -> None:
    """Reduce tensors over all processes, in place."""
    if op == "mean":
        mean_over_ranks(params)
    elif is_distributed():
        for one in params:
            torch.distributed.all_reduce(one)


def all_reduce_dict(
    data: dict[str, Tensor], op: str = "sum", group: object = None, device: object = None
) -> None:
    """Reduce the tensors of a dict over all processes, in place; the keys are in all of them."""
    for _, one in sorted(data.items()):
        if one.dtype.is_floating_point:
            all_reduce_params([one], op=op)


def broadcast_object_list(data: list[object], src: int = 0, group: object = None) -> None:
    """Give all processes what one of them has, in place."""
    if is_distributed():
        torch.distributed.broadcast_object_list(data, src)


def collect_results(
    results: list[object], size: int, device: str = "cpu", tmpdir: str | None = None
) -> list[object] | None:
    """Gather the results of all processes in the main one, in the order of the data."""
    if not is_distributed():
        return results[:size]
    parts: list[list[object]] = [[] for _ in range(get_world_size())]
    torch.distributed.all_gather_object(parts, results)
    if not is_main_process():
        return None
    longest = max(len(part) for part in parts)
    mixed = [part[place] for place in range(longest) for part in parts if place < len(part)]
    return mixed[:size]


def sync_random_seed(group: object = None) -> int:
    """Agree on a seed."""
    seed: list[object] = [int(np.random.randint(2**31))]  # noqa: NPY002 - what a seed in MMEngine seeds
    broadcast_object_list(seed)
    return int(str(seed[0]))
