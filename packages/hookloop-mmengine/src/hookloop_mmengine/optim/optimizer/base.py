"""``mmengine.optim.optimizer.base``: the base of wrappers."""

from __future__ import annotations

from hookloop_mmengine.optim.base_wrapper import (
    BaseOptimWrapper,
)

__all__ = [
    "BaseOptimWrapper",
]
