"""``mmengine.optim.optimizer.default_constructor``: the constructor with rules per parameter."""

from __future__ import annotations

from hookloop_mmengine.optim.constructor import (
    DefaultOptimWrapperConstructor,
)

__all__ = [
    "DefaultOptimWrapperConstructor",
]
