"""``mmengine.optim``: optimizer wrappers and parameter schedulers."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.optim.base_scheduler import _ParamScheduler
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
from hookloop_mmengine.optim.schedules import (
    ConstantLR,
    ConstantMomentum,
    ConstantParamScheduler,
    CosineAnnealingLR,
    CosineAnnealingMomentum,
    CosineAnnealingParamScheduler,
    CosineRestartLR,
    CosineRestartMomentum,
    CosineRestartParamScheduler,
    ExponentialLR,
    ExponentialMomentum,
    ExponentialParamScheduler,
    LinearLR,
    LinearMomentum,
    LinearParamScheduler,
    MultiStepLR,
    MultiStepMomentum,
    MultiStepParamScheduler,
    OneCycleLR,
    OneCycleParamScheduler,
    PolyLR,
    PolyMomentum,
    PolyParamScheduler,
    ReduceOnPlateauLR,
    ReduceOnPlateauMomentum,
    ReduceOnPlateauParamScheduler,
    StepLR,
    StepMomentum,
    StepParamScheduler,
)
from hookloop_mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIMIZERS

__all__ = [
    "OPTIMIZERS",
    "OPTIM_WRAPPER_CONSTRUCTORS",
    "AmpOptimWrapper",
    "BaseOptimWrapper",
    "ConstantLR",
    "ConstantMomentum",
    "ConstantParamScheduler",
    "CosineAnnealingLR",
    "CosineAnnealingMomentum",
    "CosineAnnealingParamScheduler",
    "CosineRestartLR",
    "CosineRestartMomentum",
    "CosineRestartParamScheduler",
    "DefaultOptimWrapperConstructor",
    "ExponentialLR",
    "ExponentialMomentum",
    "ExponentialParamScheduler",
    "LinearLR",
    "LinearMomentum",
    "LinearParamScheduler",
    "MultiStepLR",
    "MultiStepMomentum",
    "MultiStepParamScheduler",
    "OneCycleLR",
    "OneCycleParamScheduler",
    "OptimWrapper",
    "OptimWrapperDict",
    "PolyLR",
    "PolyMomentum",
    "PolyParamScheduler",
    "ReduceOnPlateauLR",
    "ReduceOnPlateauMomentum",
    "ReduceOnPlateauParamScheduler",
    "StepLR",
    "StepMomentum",
    "StepParamScheduler",
    "_ParamScheduler",
    "build_optim_wrapper",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
