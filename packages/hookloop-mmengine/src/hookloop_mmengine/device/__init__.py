"""``mmengine.device``: the devices of this machine."""

from __future__ import annotations

import torch

from hookloop.dialects import choose_device

__all__ = [
    "get_device",
    "get_max_cuda_memory",
    "get_max_musa_memory",
    "is_cuda_available",
    "is_dipu_available",
    "is_mlu_available",
    "is_mps_available",
    "is_musa_available",
    "is_npu_available",
    "is_npu_support_full_precision",
]


def get_device() -> str:
    """Return the type of the best device, for example ``cuda``."""
    return choose_device("auto").type


def is_cuda_available() -> bool:
    """Return whether there is a GPU that CUDA can use."""
    return torch.cuda.is_available()


def is_mps_available() -> bool:
    """Return whether there is a GPU of Apple."""
    return torch.backends.mps.is_available()


def get_max_cuda_memory(device: torch.device | None = None) -> int:
    """Return the peak memory of the tensors so far, in MB."""
    return int(torch.cuda.max_memory_allocated(device) / 2**20)


def is_npu_available() -> bool:
    """Return whether there is an NPU: hookloop does not use it."""
    return False


# Devices that other packages add to torch. Training on them is not offered.
is_dipu_available = is_mlu_available = is_musa_available = is_npu_available


def get_max_musa_memory(device: torch.device | None = None) -> int:
    """Return 0: there is no such device."""
    return 0


def is_npu_support_full_precision() -> bool:
    """Return whether an NPU computes in full precision: there is none."""
    return False
