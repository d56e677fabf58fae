"""`OutputCSVHook`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.hooks.logging_hooks import OutputCSVHook

__all__ = ["OutputCSVHook"]
