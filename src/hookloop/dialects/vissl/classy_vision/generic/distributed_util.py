"""``classy_vision.generic.distributed_util``: functions about the processes of a run."""

from __future__ import annotations

import torch.distributed

from hookloop.parallel.world import World


def get_rank() -> int:
    """Return the rank of this process."""
    # From the environment: hook files call these functions without a task.
    return World.from_environment().rank


def get_world_size() -> int:
    """Return the number of processes."""
    return World.from_environment().size


def is_primary() -> bool:
    """Return whether this is the process that writes."""
    return get_rank() == 0


is_master = is_primary  # The older name.


def is_distributed_training_run() -> bool:
    """Return whether there are several processes."""
    return get_world_size() > 1


def barrier() -> None:
    """Wait for all processes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def all_reduce_max(tensor: torch.Tensor) -> torch.Tensor:
    """Replace the tensor by its maximum over all processes, and return it."""
    # In a single process there is no group to talk to, and the tensor is the maximum already.
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(tensor, torch.distributed.ReduceOp.MAX)
    return tensor
