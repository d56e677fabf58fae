"""``imix.engine.hooks.periods.checkpoint``: the hook that saves."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.checkpoint import CheckPointHook

__all__ = ["CheckPointHook"]
