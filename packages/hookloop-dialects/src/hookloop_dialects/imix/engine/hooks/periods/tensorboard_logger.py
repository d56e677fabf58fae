"""``imix.engine.hooks.periods.tensorboard_logger``: the logger for TensorBoard."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.log_writers import TensorboardLoggerHook

__all__ = ["TensorboardLoggerHook"]
