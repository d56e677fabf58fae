"""``imix.engine.hooks.text_logger_hook``: a hook that logs a text."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.rows import TextLoggerHook

__all__ = ["TextLoggerHook"]
