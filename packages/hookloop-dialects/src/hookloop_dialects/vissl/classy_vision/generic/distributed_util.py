"""``classy_vision.generic.distributed_util``: functions about the processes of a run."""

from __future__ import annotations

import torch.distributed
from torch import Tensor, nn
from torch.distributed import ReduceOp
from torch.nn.parallel import DistributedDataParallel

from hookloop.dialects import World


def get_rank() -> int:
    """Return the rank of this process."""
    # From the environment: hook files call these functions without a task, also before the
    # processes are connected.
    return World.from_environment().rank


def get_world_size() -> int:
    """Return the number of processes."""
    return World.from_environment().size


def get_primary_rank() -> int:
    """Return the rank of the process that writes."""
    return 0


def is_primary() -> bool:
    """Return whether this is the process that writes."""
    return get_rank() == get_primary_rank()


is_master = is_primary  # The older name.


def is_distributed_training_run() -> bool:
    """Return whether there are several processes."""
    return get_world_size() > 1


def barrier() -> None:
    """Wait for all processes."""
    if _is_connected():
        torch.distributed.barrier()


# --- tensors of all processes; in a single process each function returns what it got -------------


def all_reduce_mean(tensor: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes."""
    # Not every backend (gloo) can compute a mean.
    return all_reduce_sum(tensor) / get_world_size() if _is_connected() else tensor


def all_reduce_sum(tensor: Tensor) -> Tensor:
    """Replace the tensor by its sum over all processes, and return it."""
    return all_reduce_op(tensor, ReduceOp.SUM)


def all_reduce_max(tensor: Tensor) -> Tensor:
    """Replace the tensor by its maximum over all processes, and return it."""
    return all_reduce_op(tensor, ReduceOp.MAX)


def all_reduce_op(tensor: Tensor, op: ReduceOp.RedOpType) -> Tensor:
    """Replace the tensor by its reduction over all processes, and return it."""
    if _is_connected():
        # NCCL exchanges only what is on a GPU.
        sent, before = convert_to_distributed_tensor(tensor)
        torch.distributed.all_reduce(sent, op)
        if sent is not tensor:
            tensor.copy_(convert_to_normal_tensor(sent, before))
    return tensor


def gather_tensors_from_all(tensor: Tensor) -> list[Tensor]:
    """Return the tensors of all processes, which have the same shape; a number has one element."""
    own = tensor.detach().reshape(-1) if tensor.ndim == 0 else tensor.detach().contiguous()
    if not _is_connected():
        return [own]
    gathered = [torch.empty_like(own) for _ in range(get_world_size())]
    torch.distributed.all_gather(gathered, own)
    return gathered


def gather_from_all(tensor: Tensor) -> Tensor:
    """Return the tensors of all processes, joined along the first dimension."""
    return torch.cat(gather_tensors_from_all(tensor), 0)


def broadcast(tensor: Tensor, src: int = 0) -> Tensor:
    """Replace the tensor by that of one process, and return it."""
    if _is_connected():
        torch.distributed.broadcast(tensor, src)
    return tensor


def broadcast_object(obj: object, src: int = 0, use_disk: bool = True) -> object:
    """Return the object of one process in all of them; it is sent, whatever ``use_disk`` says."""
    sent = [obj]
    if _is_connected():
        torch.distributed.broadcast_object_list(sent, src)
    return sent[0]


def convert_to_distributed_tensor(tensor: Tensor) -> tuple[Tensor, str]:
    """Return a tensor where the processes can exchange it, and where it was."""
    before = "gpu" if tensor.is_cuda else "cpu"
    needs_gpu = _is_connected() and torch.distributed.get_backend() == "nccl"
    return (tensor.cuda() if needs_gpu and before == "cpu" else tensor), before


def convert_to_normal_tensor(tensor: Tensor, orig_device: str) -> Tensor:
    """Return a tensor where it was before the exchange."""
    return tensor.cpu() if tensor.is_cuda and orig_device == "cpu" else tensor


def init_distributed_data_parallel_model(
    model: nn.Module, broadcast_buffers: bool = False, find_unused_parameters: bool = True
) -> nn.Module:
    """Return a model whose gradients are combined; as it is in one process, or without any.

    Args:
        model: A second model of a hook; the run's own model is replicated by the engine.
        broadcast_buffers: Whether each forward pass sends the buffers of the first process.
        find_unused_parameters: Whether parameters may have no gradient.
    """
    trained = any(value.requires_grad for value in model.parameters())
    if not _is_connected() or not trained:  # torch rejects a model without gradients.
        return model
    return DistributedDataParallel(
        model,
        broadcast_buffers=broadcast_buffers,
        find_unused_parameters=find_unused_parameters,
    )


def _is_connected() -> bool:
    # In a single process there is no group to talk to.
    return torch.distributed.is_available() and torch.distributed.is_initialized()
