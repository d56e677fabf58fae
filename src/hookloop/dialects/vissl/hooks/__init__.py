"""VISSL's hooks; a name is imported when it is first used.

Hooks of single research methods (MoCo, SwAV, DINO, iBOT, DeepCluster, distillation) are not
offered: they belong to losses and models that VISSL alone has.
"""

from __future__ import annotations

from importlib import import_module

from hookloop.dialects.vissl.hooks.functions import SSLClassyHookFunctions

MODULES = {
    "CheckNanLossHook": "training_hooks",
    "CheckNanModelOutputHook": "training_hooks",
    "CudaSynchronizeHook": "training_hooks",
    "DumpMemoryOnException": "log_hooks",
    "EmaHook": "training_hooks",
    "FreezeParametersHook": "training_hooks",
    "GradClipHook": "training_hooks",
    "LogGpuMemoryHook": "log_hooks",
    "LogGpuStatsHook": "log_hooks",
    "LogLossLrEtaHook": "log_hooks",
    "LogLossMetricsCheckpointHook": "log_hooks",
    "LogPerfTimeMetricsHook": "log_hooks",
    "ModelOutputMaskHook": "training_hooks",
    "ProfilingHook": "training_hooks",
    "SSLModelComplexityHook": "training_hooks",
    "SSLTensorboardHook": "board_hook",
    "SetDataSamplerEpochHook": "training_hooks",
    "default_hook_generator": "generator",
}
"""Where each hook is."""

__all__ = ["SSLClassyHookFunctions", *MODULES]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
