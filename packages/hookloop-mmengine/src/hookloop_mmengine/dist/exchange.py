"""``mmengine.dist``: tensors and objects that all processes exchange.

Each function works in a single process too, where there is nobody to exchange anything with.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.distributed import ReduceOp

from hookloop_mmengine.dist.processes import get_rank, is_distributed

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_OPERATIONS = {
    "sum": "SUM", "mean": "SUM", "product": "PRODUCT", "min": "MIN", "max": "MAX", "band": "BAND",
    "bor": "BOR", "bxor": "BXOR",
}  # fmt: skip


def all_reduce(data: Tensor, op: str = "sum", group: ProcessGroup | None = None) -> None:
    """Reduce a tensor over all processes, in place.

    Args:
        data: The tensor.
        op: ``sum``, ``mean``, ``product``, ``min``, ``max``, ``band``, ``bor`` or ``bxor``.
        group: Some of the processes; by default all.
    """
    if op.lower() not in _OPERATIONS:
        raise ValueError(f"reduce op should be one of {', '.join(_OPERATIONS)}, but got {op}")
    if not is_distributed():
        return
    with torch.no_grad():
        operation = getattr(ReduceOp, _OPERATIONS[op.lower()])
        torch.distributed.all_reduce(data, operation, group)
        if op.lower() == "mean":  # Not every backend (gloo) can compute it.
            size = torch.distributed.get_world_size(group)
            data.copy_(data / size if data.is_floating_point() else data // size)


def all_gather(data: Tensor, group: ProcessGroup | None = None) -> list[Tensor]:
    """Return the tensors of all processes, which have the same shape, in every process."""
    if not is_distributed():
        return [data]
    # gloo wants the memory without gaps, and gradients do not pass through.
    own = data.detach().contiguous()
    gathered = [torch.empty_like(own) for _ in range(torch.distributed.get_world_size(group))]
    torch.distributed.all_gather(gathered, own, group)
    return gathered




def broadcast(data: Tensor, src: int = 0, group: ProcessGroup | None = None) -> None:
    """Copy the tensor of one process to all others, in place."""
    if is_distributed():
        torch.distributed.broadcast(data.detach(), src, group)


def all_gather_object(data: object, group: ProcessGroup | None = None) -> list[object]:
    """Return the objects of all processes in every process."""
    if not is_distributed():
        return [data]
    gathered: list[object] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(gathered, data, group)
    return gathered




def broadcast_object_list(
    data: list[object], src: int = 0, group: ProcessGroup | None = None
) -> None:
    """Copy the objects of one process to all others, in place."""
    if is_distributed():
        torch.distributed.broadcast_object_list(data, src, group)




def all_reduce_dict(
    data: MutableMapping[str, Tensor],
    op: str = "sum",
    group: ProcessGroup | None = None,
    device: object = None,
) -> None:
    """Reduce the tensors of a dict over all processes, in place; all have the same keys."""
    if not is_distributed():
        return
    # Sorted, because the calls must pair up and the order of dicts may differ by process.
    for name, tensor in sorted(data.items()):
        if op == "mean" and not tensor.is_floating_point():
            data[name] = tensor = tensor.float()  # The mean of whole numbers need not be whole.
        all_reduce(tensor, op, group)


def sync_random_seed(group: ProcessGroup | None = None) -> int:
    """Draw a seed in the main process and return it in all of them."""
    seed: list[object] = [int(np.random.randint(2**31))]  # noqa: NPY002 - MMEngine seeds this generator
    broadcast_object_list(seed, group=group)
    return int(str(seed[0]))
