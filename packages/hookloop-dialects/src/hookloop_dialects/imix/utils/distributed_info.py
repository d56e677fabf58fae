"""``imix.utils.distributed_info``: functions about the processes of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, cast

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.distributed import ProcessGroup

from hookloop.dialects import World

P = ParamSpec("P")
R = TypeVar("R")


def get_rank() -> int:
    """Return the rank of this process."""
    # From the environment: hook files call these functions also before the processes are connected.
    return World.from_environment().rank


def get_world_size() -> int:
    """Return the number of processes."""
    return World.from_environment().size


def get_local_rank() -> int:
    """Return the rank of this process on its machine."""
    return World.from_environment().local_rank


def is_main_process() -> bool:
    """Return whether this is the process that writes."""
    return get_rank() == 0


def master_only_run(func: Callable[P, R]) -> Callable[P, R | None]:
    """Let a function do nothing on all processes but the first."""

    @functools.wraps(func)
    def on_first(*args: P.args, **kwargs: P.kwargs) -> R | None:
        return func(*args, **kwargs) if is_main_process() else None

    return on_first


def synchronize() -> None:
    """Wait for all processes."""
    if _is_connected():
        torch.distributed.barrier()


def is_single_processes(group: ProcessGroup | None = None) -> bool:
    """Return whether there is nobody else in a group."""
    return not _is_connected() or torch.distributed.get_world_size(group) == 1


def all_gather(data: R, group: ProcessGroup | None = None) -> list[R]:
    """Return what all processes have, in their order; anything that can be pickled."""
    if is_single_processes(group):
        return [data]
    found: list[object] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(found, data, group)
    return cast("list[R]", found)


def gather(data: R, *, dst_rank: int = 0, group: ProcessGroup | None = None) -> list[R]:
    """Return what all processes have on one of them, and an empty list on the others."""
    found = all_gather(data, group)
    return found if is_single_processes(group) or get_rank() == dst_rank else []


def shared_random_seed(low: int = 2**31, select_idx: int = 0) -> int:
    """Return a random number that is the same on all processes."""
    return all_gather(int(np.random.randint(low)))[select_idx]


def reduce_dict(input_dict: Mapping[str, Tensor], is_average: bool = True) -> dict[str, Tensor]:
    """Return the mean, or the sum, of each tensor over all processes, on the first of them."""
    if is_single_processes():
        return dict(input_dict)
    with torch.no_grad():
        values = torch.stack(list(input_dict.values()), dim=0)
        torch.distributed.reduce(values, dst=0)
        if is_average and is_main_process():
            values /= get_world_size()
        return dict(zip(input_dict, values, strict=True))


def _is_connected() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
