"""VISSL's hooks; a name is imported when it is first used.

The hooks of individual research methods (MoCo, SwAV, DINO, iBOT, DeepCluster, distillation) work
with a loss module that has the attributes of VISSL's.
"""

from __future__ import annotations

from hookloop.dialects import lazy_names
from hookloop_dialects.vissl.hooks.functions import SSLClassyHookFunctions

MODULES = {
    "CheckNanLossHook": "training_hooks",
    "CheckNanModelOutputHook": "training_hooks",
    "ClusterMemoryHook": "deepclusterv2_hooks",
    "CudaSynchronizeHook": "training_hooks",
    "DINOHook": "dino_hooks",
    "DistillationHook": "distillation_hooks",
    "DumpMemoryOnException": "log_hooks",
    "EmaHook": "ema_hooks",
    "FreezeParametersHook": "training_hooks",
    "GradClipHook": "training_hooks",
    "IBOTHook": "ibot_hooks",
    "InitMemoryHook": "deepclusterv2_hooks",
    "LogGpuMemoryHook": "log_hooks",
    "LogGpuStatsHook": "log_hooks",
    "LogLossLrEtaHook": "log_hooks",
    "LogLossMetricsCheckpointHook": "log_hooks",
    "LogPerfTimeMetricsHook": "log_hooks",
    "MoCoHook": "moco_hooks",
    "ModelOutputMaskHook": "training_hooks",
    "NormalizePrototypesHook": "swav_hooks",
    "ProfilingHook": "training_hooks",
    "SSLModelComplexityHook": "training_hooks",
    "SSLTensorboardHook": "board_hook",
    "SetDataSamplerEpochHook": "training_hooks",
    "SwAVMomentumHook": "swav_momentum_hooks",
    "SwAVMomentumNormalizePrototypesHook": "swav_momentum_hooks",
    "SwAVUpdateQueueScoresHook": "swav_hooks",
    "default_hook_generator": "generator",
}
"""The module of each hook."""

__all__ = ["SSLClassyHookFunctions", *MODULES]


__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in MODULES.items()}, __all__
)
