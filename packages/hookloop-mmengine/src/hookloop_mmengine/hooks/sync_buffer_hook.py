"""``mmengine.hooks.sync_buffer_hook``: the hook that averages buffers."""

from __future__ import annotations

from hookloop_mmengine.hooks.simple_hooks import SyncBuffersHook

__all__ = ["SyncBuffersHook"]
