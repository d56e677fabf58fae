"""``mmengine.optim.optimizer.builder``: build wrappers, and the names of torch's optimizers."""

from __future__ import annotations

import torch.optim

from hookloop_mmengine.optim.constructor import build_optim_wrapper
from hookloop_mmengine.registry import (
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
)

__all__ = [
    "OPTIMIZERS",
    "OPTIM_WRAPPERS",
    "OPTIM_WRAPPER_CONSTRUCTORS",
    "TORCH_OPTIMIZERS",
    "build_optim_wrapper",
]

TORCH_OPTIMIZERS = [
    name
    for name, found in vars(torch.optim).items()
    if isinstance(found, type) and issubclass(found, torch.optim.Optimizer)
]
