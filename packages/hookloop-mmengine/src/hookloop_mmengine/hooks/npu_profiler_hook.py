"""``mmengine.hooks.npu_profiler_hook``: the hook that is rejected, because it needs an NPU."""

from __future__ import annotations

from hookloop_mmengine.hooks.profiler_hook import NPUProfilerHook

__all__ = ["NPUProfilerHook"]
