"""``mmengine.model``: the base of models, their preprocessing, and averaged models."""

from __future__ import annotations

from hookloop.dialects.mmengine.model.averaged_model import (
    BaseAveragedModel,
    ExponentialMovingAverage,
    MomentumAnnealingEMA,
    StochasticWeightAverage,
)
from hookloop.dialects.mmengine.model.base_model import BaseModel
from hookloop.dialects.mmengine.model.base_module import BaseModule, ModuleList, Sequential
from hookloop.dialects.mmengine.model.data_preprocessor import (
    BaseDataPreprocessor,
    ImgDataPreprocessor,
)
from hookloop.dialects.mmengine.model.test_time_aug import BaseTTAModel
from hookloop.dialects.mmengine.model.wrappers import is_model_wrapper

__all__ = [
    "BaseAveragedModel",
    "BaseDataPreprocessor",
    "BaseModel",
    "BaseModule",
    "BaseTTAModel",
    "ExponentialMovingAverage",
    "ImgDataPreprocessor",
    "ModuleList",
    "MomentumAnnealingEMA",
    "Sequential",
    "StochasticWeightAverage",
    "is_model_wrapper",
]
