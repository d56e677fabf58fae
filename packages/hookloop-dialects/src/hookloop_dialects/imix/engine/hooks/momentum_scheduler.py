"""``imix.engine.hooks.momentum_scheduler``: a hook that does nothing."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.rows import MomentumSchedulerHook

__all__ = ["MomentumSchedulerHook"]
