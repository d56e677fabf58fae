"""iMIX's hooks; a name is imported when it is first used."""

from __future__ import annotations

from hookloop.dialects import lazy_names
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase, PriorityStatus
from hookloop_dialects.imix.engine.hooks.builder import HOOKS, build_hook, build_hooks
from hookloop_dialects.imix.log_buffer import LogBufferStorage, get_log_buffer

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
"""The module of each hook."""

__all__ = [
    "HOOKS",
    "HookBase",
    "LogBufferStorage",
    "LogBufferWriter",
    "PriorityStatus",
    "build_hook",
    "build_hooks",
    "get_log_buffer",
    *MODULES,
]


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "LogBufferWriter": f"{__name__}.log_writers",
        **{name: f"{__name__}.{module}" for name, module in MODULES.items()},
    },
    __all__,
)
