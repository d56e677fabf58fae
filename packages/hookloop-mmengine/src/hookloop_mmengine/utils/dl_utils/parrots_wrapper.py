"""``mmengine.utils.dl_utils.parrots_wrapper``: torch's version, and base classes of its layers."""

from __future__ import annotations

import torch
from torch.nn import SyncBatchNorm
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.pooling import (
    _AdaptiveAvgPoolNd,
    _AdaptiveMaxPoolNd,
    _AvgPoolNd,
    _MaxPoolNd,
)
from torch.utils.data import DataLoader

__all__ = [
    "TORCH_VERSION",
    "DataLoader",
    "PoolDataLoader",
    "SyncBatchNorm",
    "SyncBatchNorm_",
    "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd",
    "_AvgPoolNd",
    "_BatchNorm",
    "_ConvNd",
    "_ConvTransposeMixin",
    "_InstanceNorm",
    "_MaxPoolNd",
    "get_build_config",
    "is_rocm_pytorch",
]

TORCH_VERSION = torch.__version__
# Names that differ only where torch is replaced by another system.
PoolDataLoader, SyncBatchNorm_, _ConvTransposeMixin = DataLoader, SyncBatchNorm, _ConvTransposeNd


def is_rocm_pytorch() -> bool:
    """Return whether torch was built for GPUs of AMD, and their libraries are there."""
    if torch.version.hip is None:
        return False
    # Slow to import, so only where it can make a difference.
    from torch.utils.cpp_extension import ROCM_HOME

    return ROCM_HOME is not None


def get_build_config() -> str:
    """Return how torch was built."""
    return torch.__config__.show()
