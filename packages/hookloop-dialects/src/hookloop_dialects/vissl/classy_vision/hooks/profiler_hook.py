"""`ProfilerHook`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.rows import ProfilerHook

__all__ = ["ProfilerHook"]
