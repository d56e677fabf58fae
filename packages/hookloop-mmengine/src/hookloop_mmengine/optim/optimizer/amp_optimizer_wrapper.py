"""``mmengine.optim.optimizer.amp_optimizer_wrapper``: the wrapper for mixed precision."""

from __future__ import annotations

from hookloop_mmengine.optim.optim_wrapper import (
    AmpOptimWrapper,
)

__all__ = [
    "AmpOptimWrapper",
]
