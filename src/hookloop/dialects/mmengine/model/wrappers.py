"""``mmengine.model.wrappers``: models that wrap another model."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

MMDistributedDataParallel = DistributedDataParallel


def is_model_wrapper(model: nn.Module, registry: object = None) -> bool:
    """Return whether a model wraps another, which is its ``module``."""
    return isinstance(model, DataParallel | DistributedDataParallel)
