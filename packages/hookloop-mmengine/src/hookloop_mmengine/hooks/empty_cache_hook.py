"""``mmengine.hooks.empty_cache_hook``: the hook that frees memory of the GPU."""

from __future__ import annotations

from hookloop_mmengine.hooks.simple_hooks import EmptyCacheHook

__all__ = ["EmptyCacheHook"]
