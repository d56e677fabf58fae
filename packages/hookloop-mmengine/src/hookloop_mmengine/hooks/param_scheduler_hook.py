"""``mmengine.hooks.param_scheduler_hook``: the hook that steps the schedulers."""

from __future__ import annotations

from hookloop_mmengine.hooks.simple_hooks import ParamSchedulerHook

__all__ = ["ParamSchedulerHook"]
