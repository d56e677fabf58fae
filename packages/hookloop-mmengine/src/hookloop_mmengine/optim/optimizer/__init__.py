"""``mmengine.optim.optimizer``: wrappers of optimizers, under the names that files import."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.optim.base_wrapper import BaseOptimWrapper
from hookloop_mmengine.optim.constructor import (
    DefaultOptimWrapperConstructor,
    build_optim_wrapper,
)
from hookloop_mmengine.optim.optim_wrapper import (
    AmpOptimWrapper,
    OptimWrapper,
    OptimWrapperDict,
)
from hookloop_mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIMIZERS

__all__ = [
    "OPTIMIZERS",
    "OPTIM_WRAPPER_CONSTRUCTORS",
    "AmpOptimWrapper",
    "BaseOptimWrapper",
    "DefaultOptimWrapperConstructor",
    "OptimWrapper",
    "OptimWrapperDict",
    "build_optim_wrapper",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
