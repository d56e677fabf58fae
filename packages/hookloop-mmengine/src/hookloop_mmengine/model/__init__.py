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
    ImgDataPreprocessor,
)
from hookloop_mmengine.model.base_module import (
    BaseModule,
    ModuleDict,
    ModuleList,
    Sequential,
)
from hookloop_mmengine.model.test_time_aug import BaseTTAModel
from hookloop_mmengine.model.utils import (
    merge_dict,
    stack_batch,
)
from hookloop_mmengine.model.weight_init import (
    BaseInit,
    Caffe2XavierInit,
    ConstantInit,
    KaimingInit,
    NormalInit,
    PretrainedInit,
    TruncNormalInit,
    UniformInit,
    XavierInit,
    bias_init_with_prob,
    caffe2_xavier_init,
    constant_init,
    initialize,
    kaiming_init,
    normal_init,
    trunc_normal_init,
    uniform_init,
    update_init_info,
    xavier_init,
)
from hookloop_mmengine.model.wrappers import MMDistributedDataParallel, is_model_wrapper

__all__ = [
    "BaseAveragedModel",
    "BaseDataPreprocessor",
    "BaseInit",
    "BaseModel",
    "BaseModule",
    "BaseTTAModel",
    "Caffe2XavierInit",
    "ConstantInit",
    "ExponentialMovingAverage",
    "ImgDataPreprocessor",
    "KaimingInit",
    "MMDistributedDataParallel",
    "ModuleDict",
    "ModuleList",
    "MomentumAnnealingEMA",
    "NormalInit",
    "PretrainedInit",
    "Sequential",
    "StochasticWeightAverage",
    "TruncNormalInit",
    "UniformInit",
    "XavierInit",
    "bias_init_with_prob",
    "caffe2_xavier_init",
    "constant_init",
    "initialize",
    "is_model_wrapper",
    "kaiming_init",
    "merge_dict",
    "normal_init",
    "stack_batch",
    "trunc_normal_init",
    "uniform_init",
    "update_init_info",
    "xavier_init",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
