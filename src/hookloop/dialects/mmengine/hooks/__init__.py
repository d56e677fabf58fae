"""``mmengine.hooks``: the base class and MMEngine's own hooks, built on native ones."""

from __future__ import annotations

from hookloop.dialects.mmengine.hooks.checkpoint_hook import CheckpointHook
from hookloop.dialects.mmengine.hooks.early_stopping_hook import EarlyStoppingHook
from hookloop.dialects.mmengine.hooks.ema_hook import EMAHook
from hookloop.dialects.mmengine.hooks.hook import Hook
from hookloop.dialects.mmengine.hooks.iter_timer_hook import IterTimerHook
from hookloop.dialects.mmengine.hooks.logger_hook import LoggerHook
from hookloop.dialects.mmengine.hooks.naive_visualization_hook import NaiveVisualizationHook
from hookloop.dialects.mmengine.hooks.profiler_hook import NPUProfilerHook, ProfilerHook
from hookloop.dialects.mmengine.hooks.runtime_info_hook import RuntimeInfoHook
from hookloop.dialects.mmengine.hooks.simple_hooks import (
    DistSamplerSeedHook,
    EmptyCacheHook,
    ParamSchedulerHook,
    SyncBuffersHook,
)
from hookloop.dialects.mmengine.hooks.test_time_aug_hook import PrepareTTAHook

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
