"""``mmengine.optim.optimizer.optimizer_wrapper``: the wrapper of an optimizer."""

from __future__ import annotations

from hookloop_mmengine.optim.optim_wrapper import (
    OptimWrapper,
)

__all__ = [
    "OptimWrapper",
]
