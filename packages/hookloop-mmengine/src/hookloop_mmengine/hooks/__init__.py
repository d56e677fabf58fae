"""``mmengine.hooks``: the base class and MMEngine's own hooks, built on native ones."""

from __future__ import annotations

from hookloop_mmengine.hooks.checkpoint_hook import CheckpointHook
from hookloop_mmengine.hooks.early_stopping_hook import EarlyStoppingHook
from hookloop_mmengine.hooks.ema_hook import EMAHook
from hookloop_mmengine.hooks.hook import Hook
from hookloop_mmengine.hooks.iter_timer_hook import IterTimerHook
from hookloop_mmengine.hooks.logger_hook import LoggerHook
from hookloop_mmengine.hooks.naive_visualization_hook import NaiveVisualizationHook
from hookloop_mmengine.hooks.profiler_hook import NPUProfilerHook, ProfilerHook
from hookloop_mmengine.hooks.runtime_info_hook import RuntimeInfoHook
from hookloop_mmengine.hooks.simple_hooks import (
    DistSamplerSeedHook,
    EmptyCacheHook,
    ParamSchedulerHook,
    SyncBuffersHook,
)
from hookloop_mmengine.hooks.test_time_aug_hook import PrepareTTAHook

__all__ = [
    "CheckpointHook",
    "DistSamplerSeedHook",
    "EMAHook",
    "EarlyStoppingHook",
    "EmptyCacheHook",
    "Hook",
    "IterTimerHook",
    "LoggerHook",
    "NPUProfilerHook",
    "NaiveVisualizationHook",
    "ParamSchedulerHook",
    "PrepareTTAHook",
    "ProfilerHook",
    "RuntimeInfoHook",
    "SyncBuffersHook",
]
