"""``mmengine.model``: the base of models, their preprocessing and weights, and averaged models."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.model.averaged_model import (
    BaseAveragedModel,
    ExponentialMovingAverage,
    MomentumAnnealingEMA,
    StochasticWeightAverage,
)
from hookloop_mmengine.model.base_model import (
    BaseDataPreprocessor,
    BaseModel,
)
from hookloop_mmengine.model.base_module import (
    BaseModule,
    ModuleDict,
    ModuleList,
    Sequential,
)
from hookloop_mmengine.model.test_time_aug import BaseTTAModel
from hookloop_mmengine.model.wrappers import MMDistributedDataParallel, is_model_wrapper

__all__ = [
    "BaseAveragedModel",
    "BaseDataPreprocessor",
    "BaseModel",
    "BaseModule",
    "BaseTTAModel",
    "ExponentialMovingAverage",
    "MMDistributedDataParallel",
    "ModuleDict",
    "ModuleList",
    "MomentumAnnealingEMA",
    "Sequential",
    "StochasticWeightAverage",
    "is_model_wrapper",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
