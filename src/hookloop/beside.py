"""What is beside the engine: distributions of their own, released together with it.

The engine knows of them nothing but names: who asks for one that is not installed is told which
package brings it.
"""

from __future__ import annotations

OWN = ("hookloop", "hookloop_dialects", "hookloop_mmengine")
"""Packages whose code says itself what it requests on all ranks, and draws no random numbers."""

EXTRAS = {
    "mmengine": "mmengine",
    **dict.fromkeys(("emloop", "imix", "pointrix", "vissl"), "dialects"),
    **dict.fromkeys(("lightning", "transformers"), "callbacks"),
}
"""The dialects, each with the extra of hookloop that brings it."""

PACKAGES = {
    "emloop": "emloop cxflow emloop_tensorflow cxflow_tensorflow",
    "imix": "imix",
    "lightning": "lightning pytorch_lightning lightning_fabric",
    "mmengine": "mmengine",
    "pointrix": "pointrix",
    "transformers": "transformers",
    "vissl": "vissl classy_vision fvcore iopath fairscale",
}
"""Foreign packages of each dialect, as files import them."""

HOOKS = {
    "emloop": (
        "Benchmark CatchSigint Check EveryNEpoch Flatten LogDir LogProfile LogitsToCsv OnPlateau "
        "SaveBest SaveEvery SaveFile SaveLatest SaveMasks SequenceToCsv SkipZerothEpoch "
        "TrainingTrace WriteTensorboard"
    ),
    "imix": (
        "AutogradAnomalyDetectHook AutogradProfilerHook CheckPointHook CommonMetricLoggerHook "
        "EMAEpochHook EMAIterHook EvaluateHook Fp16OptimizerHook IterationTimerHook "
        "JSONLoggerHook LRSchedulerHook MomentumSchedulerHook OptimizerHook PeriodicLogger "
        "TensorboardLoggerHook TextLoggerHook"
    ),
    "mmengine": (
        "CheckpointHook DistSamplerSeedHook EMAHook EarlyStoppingHook EmptyCacheHook IterTimerHook "
        "LoggerHook NPUProfilerHook NaiveVisualizationHook ParamSchedulerHook PrepareTTAHook "
        "ProfilerHook RuntimeInfoHook SyncBuffersHook"
    ),
    "pointrix": "CheckPointHook LRSchedulerHook LogHook",
    "vissl": (
        "CheckpointHook ExponentialMovingAverageModelHook LossLrMeterLoggingHook "
        "ModelComplexityHook ModelTensorboardHook OutputCSVHook PreciseBatchNormHook ProfilerHook "
        "ProgressBarHook TensorboardPlotHook TorchscriptHook VisdomHook CheckNanLossHook "
        "CheckNanModelOutputHook ClusterMemoryHook CudaSynchronizeHook DINOHook DistillationHook "
        "DumpMemoryOnException EmaHook FreezeParametersHook GradClipHook IBOTHook InitMemoryHook "
        "LogGpuMemoryHook LogGpuStatsHook LogLossLrEtaHook LogLossMetricsCheckpointHook "
        "LogPerfTimeMetricsHook MoCoHook ModelOutputMaskHook NormalizePrototypesHook ProfilingHook "
        "SSLModelComplexityHook SSLTensorboardHook SetDataSamplerEpochHook SwAVMomentumHook "
        "SwAVMomentumNormalizePrototypesHook SwAVUpdateQueueScoresHook"
    ),
}
"""The hooks of each dialect's catalogue that do not have the name of one of ours."""


KEYS = {"custom_hooks": ("mmengine", "imix"), "custom_imports": ("mmengine",)}
"""Keys of configs that a dialect brings."""


def is_own(value: object) -> bool:
    """Return whether a class or function is hookloop's own rather than its user's."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in OWN


def declares_state(kind: type) -> bool:
    """Return whether a class is of hookloop or a package of it, which declare what they keep.

    >>> declares_state(dict)
    False
    """
    return kind.__module__.partition(".")[0].partition("_")[0] == "hookloop"


def install(dialect: str) -> str:
    """Return how to install a dialect that is in a distribution of its own.

    >>> install("mmengine")
    "pip install 'hookloop[mmengine]'"
    """
    return f"pip install 'hookloop[{EXTRAS[dialect]}]'"


def dialects_of_package(package: str) -> list[str]:
    """Return the dialects that bring the hooks of a foreign package."""
    return [name for name, packages in PACKAGES.items() if package in packages.split()]


def dialects_of_key(key: str) -> tuple[str, ...]:
    """Return the dialects that bring a key of configs."""
    return KEYS.get(key, ())


def dialects_of_hook(hook: str) -> list[str]:
    """Return the dialects whose catalogue has a hook of this name."""
    return [name for name, hooks in HOOKS.items() if hook in hooks.split()]
