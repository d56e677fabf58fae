"""iMIX's hooks; a name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module

from hookloop.dialects.imix.engine.hooks.base_hook import HookBase, PriorityStatus
from hookloop.dialects.imix.engine.hooks.builder import HOOKS, build_hook, build_hooks

MODULES = {
    "AutogradAnomalyDetectHook": "rows",
    "AutogradProfilerHook": "rows",
    "CheckPointHook": "checkpoint",
    "CommonMetricLoggerHook": "log_writers",
    "EMAEpochHook": "ema",
    "EMAIterHook": "ema",
    "EvaluateHook": "evaluate",
    "Fp16OptimizerHook": "optimizer",
    "IterationTimerHook": "iteration_time",
    "JSONLoggerHook": "log_writers",
    "LRSchedulerHook": "lr_scheduler",
    "MomentumSchedulerHook": "rows",
    "OptimizerHook": "optimizer",
    "PeriodicLogger": "periodic_logger",
    "TensorboardLoggerHook": "log_writers",
    "TextLoggerHook": "rows",
}
"""Where each hook is."""

__all__ = [
    "HOOKS",
    "HookBase",
    "PriorityStatus",
    "build_hook",
    "build_hooks",
    *MODULES,
]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
