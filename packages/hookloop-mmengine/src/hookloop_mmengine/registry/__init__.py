"""``mmengine.registry``: classes by name, for the configs of all projects."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.registry.build_functions import (
    build_from_cfg,
    build_model_from_cfg,
    build_runner_from_cfg,
    build_scheduler_from_cfg,
)
from hookloop_mmengine.registry.default_scope import DefaultScope, init_default_scope
from hookloop_mmengine.registry.registry import Registry
from hookloop_mmengine.registry.root import (
    BATCH_AUGMENTS,
    DATA_SAMPLERS,
    DATASETS,
    EVALUATOR,
    FUNCTIONS,
    HOOKS,
    INFERENCERS,
    LOG_PROCESSORS,
    LOOPS,
    METRICS,
    MODEL_WRAPPERS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    RUNNER_CONSTRUCTORS,
    RUNNERS,
    TASK_UTILS,
    TRANSFORMS,
    VISBACKENDS,
    VISUALIZERS,
    WEIGHT_INITIALIZERS,
)

__all__ = [
    "BATCH_AUGMENTS",
    "DATASETS",
    "DATA_SAMPLERS",
    "EVALUATOR",
    "FUNCTIONS",
    "HOOKS",
    "INFERENCERS",
    "LOG_PROCESSORS",
    "LOOPS",
    "METRICS",
    "MODELS",
    "MODEL_WRAPPERS",
    "OPTIMIZERS",
    "OPTIM_WRAPPERS",
    "OPTIM_WRAPPER_CONSTRUCTORS",
    "PARAM_SCHEDULERS",
    "RUNNERS",
    "RUNNER_CONSTRUCTORS",
    "TASK_UTILS",
    "TRANSFORMS",
    "VISBACKENDS",
    "VISUALIZERS",
    "WEIGHT_INITIALIZERS",
    "DefaultScope",
    "Registry",
    "build_from_cfg",
    "build_model_from_cfg",
    "build_runner_from_cfg",
    "build_scheduler_from_cfg",
    "init_default_scope",
    "register_all_modules",
]


def register_all_modules(init_default_scope: bool = True) -> None:
    """Do nothing: names are imported when they are looked up."""


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
