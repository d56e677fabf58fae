"""``mmengine.device``: the device that there is."""

from __future__ import annotations

import torch

from hookloop.parallel.world import choose_device

__all__ = ["get_device", "get_max_cuda_memory", "is_cuda_available", "is_mps_available"]


def get_device() -> str:
    """Return the kind of the best device."""
    return choose_device("auto").type


def is_cuda_available() -> bool:
    """Tell whether there is a GPU for CUDA."""
    return torch.cuda.is_available()


def is_mps_available() -> bool:
    """Tell whether there is Apple's GPU."""
    return torch.backends.mps.is_available()


def get_max_cuda_memory(device: torch.device | None = None) -> int:
    """Return the most memory that tensors took so far, in MB."""
    return int(torch.cuda.max_memory_allocated(device) / 2**20)
