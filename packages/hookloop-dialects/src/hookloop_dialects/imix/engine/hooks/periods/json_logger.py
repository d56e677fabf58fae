"""``imix.engine.hooks.periods.json_logger``: the logger of JSON lines."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.log_writers import JSONLoggerHook

__all__ = ["JSONLoggerHook"]
