"""The names of MMEngine's own hooks, as a config may use them."""

from __future__ import annotations

_PACKAGE = "hookloop_mmengine.hooks"

# Paths, not classes: listing the names must not import torch.
CATALOGUE = {
    name: f"{_PACKAGE}:{name}"
    for name in (
        "CheckpointHook", "DistSamplerSeedHook", "EMAHook", "EarlyStoppingHook", "EmptyCacheHook",
        "IterTimerHook", "LoggerHook", "NPUProfilerHook", "NaiveVisualizationHook",
        "ParamSchedulerHook", "PrepareTTAHook", "ProfilerHook", "RuntimeInfoHook",
        "SyncBuffersHook",
    )
}  # fmt: skip
