"""``mmengine.dist``: the processes of one node as a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.distributed

from hookloop_mmengine.dist.processes import get_world_size, is_distributed

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_groups: list[ProcessGroup] = []


def init_local_group(node_rank: int, num_gpus_per_node: int) -> None:
    """Make the group of a node.

    Args:
        node_rank: Which node this process belongs to.
        num_gpus_per_node: The number of processes of each node.
    """
    if _groups:
        raise AssertionError("The local process group is already created.")
    # All processes take part in making each group, not only its own ones.
    firsts = range(0, get_world_size(), num_gpus_per_node)
    made = [
        torch.distributed.new_group(list(range(first, first + num_gpus_per_node)))
        for first in firsts
    ]
    _groups.append(made[node_rank])


def get_local_group() -> ProcessGroup | None:
    """Return the group of this node; None in a single process."""
    if not is_distributed():
        return None
    if not _groups:
        raise RuntimeError(
            "Local process group is not created, please use `init_local_group` to setup local "
            "process group."
        )
    return _groups[0]
