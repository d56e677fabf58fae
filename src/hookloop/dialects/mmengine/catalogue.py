"""The names of MMEngine's own hooks, as a config may write them."""

from __future__ import annotations

_HOME = "hookloop.dialects.mmengine.hooks"

CATALOGUE = {
    name: f"{_HOME}:{name}"
    for name in (
        "CheckpointHook", "DistSamplerSeedHook", "EMAHook", "EarlyStoppingHook", "EmptyCacheHook",
        "IterTimerHook", "LoggerHook", "NPUProfilerHook", "NaiveVisualizationHook",
        "ParamSchedulerHook", "PrepareTTAHook", "ProfilerHook", "RuntimeInfoHook",
        "SyncBuffersHook",
    )
}  # fmt: skip
