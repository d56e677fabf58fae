"""VISSL's hooks; a name is imported when it is first used.

The hooks of individual research methods (MoCo, SwAV, DINO, iBOT, DeepCluster, distillation) are
not offered: they work only with losses and models of VISSL.
"""

from __future__ import annotations

from hookloop.dialects.lazy import lazy_names
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
"""The module of each hook."""

__all__ = ["SSLClassyHookFunctions", *MODULES]


__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in MODULES.items()}, __all__
)
