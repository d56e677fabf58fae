"""``mmengine.device.utils``: the devices, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.device import (
    get_device,
    get_max_cuda_memory,
    get_max_musa_memory,
    is_cuda_available,
    is_dipu_available,
    is_mlu_available,
    is_mps_available,
    is_musa_available,
    is_npu_available,
    is_npu_support_full_precision,
)

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
