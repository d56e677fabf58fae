"""``mmengine.optim.optimizer.optimizer_wrapper_dict``: the wrapper of several optimizers."""

from __future__ import annotations

from hookloop_mmengine.optim.optim_wrapper import (
    OptimWrapperDict,
)

__all__ = [
    "OptimWrapperDict",
]
