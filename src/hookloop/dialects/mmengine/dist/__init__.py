"""``mmengine.dist``: the processes that train together, and what they exchange."""

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
    """Return whether a process group is initialized."""
    # A torch that is built without distributed training has no `is_initialized`.
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_rank(group: object = None) -> int:
    """Return the rank of this process."""
    return torch.distributed.get_rank() if is_distributed() else 0


def get_world_size(group: object = None) -> int:
    """Return the number of processes."""
    return torch.distributed.get_world_size() if is_distributed() else 1


def get_dist_info(group: object = None) -> tuple[int, int]:
    """Return the rank and the number of processes."""
    return get_rank(), get_world_size()


def is_main_process(group: object = None) -> bool:
    """Return whether this is the process that writes files."""
    return get_rank() == 0


def master_only(func: Callable[P, R]) -> Callable[P, R | None]:
    """Make a function do nothing except in the main process."""

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        return func(*args, **kwargs) if is_main_process() else None

    return wrapper


def barrier(group: object = None) -> None:
    """Wait for all processes."""
    if is_distributed():
        torch.distributed.barrier()


def init_dist(launcher: str, backend: str = "nccl", **kwargs: object) -> None:
    """Initialize the process group; hookloop does this itself under a launcher."""
    # Scripts of MMEngine call this although hookloop may have done it already.
    if launcher != "none" and not is_distributed():
        torch.distributed.init_process_group(backend)


def infer_launcher() -> str:
    """Return the launcher that started this process, or ``none``."""
    return "pytorch" if torch.distributed.is_torchelastic_launched() else "none"


def all_reduce_params(
    params: list[Tensor], coalesce: bool = True, bucket_size_mb: int = -1, op: str = "sum"
) -> None:
    """Reduce tensors over all processes, in place."""
    if op == "mean":
        mean_over_ranks(params)
    elif is_distributed():
        for tensor in params:
            torch.distributed.all_reduce(tensor)


def all_reduce_dict(
    data: dict[str, Tensor], op: str = "sum", group: object = None, device: object = None
) -> None:
    """Reduce the tensors of a dict over all processes, in place; all have the same keys."""
    # Sorted, because the calls must pair up and the order of dicts may differ by process.
    for _, tensor in sorted(data.items()):
        if tensor.dtype.is_floating_point:
            all_reduce_params([tensor], op=op)


def broadcast_object_list(data: list[object], src: int = 0, group: object = None) -> None:
    """Copy the objects of one process to all others, in place."""
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
    # Samplers deal samples out in turn; the ones beyond size are repeats that fill the last turn.
    longest = max(len(part) for part in parts)
    ordered = [part[turn] for turn in range(longest) for part in parts if turn < len(part)]
    return ordered[:size]


def sync_random_seed(group: object = None) -> int:
    """Draw a seed in the main process and return it in all of them."""
    seed: list[object] = [int(np.random.randint(2**31))]  # noqa: NPY002 - MMEngine seeds this generator
    broadcast_object_list(seed)
    return int(str(seed[0]))
