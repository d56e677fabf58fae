"""``imix.engine.hooks.periods``: loggers, checkpoints and the log buffer."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.checkpoint import CheckPointHook
from hookloop_dialects.imix.engine.hooks.log_writers import (
    CommonMetricLoggerHook,
    JSONLoggerHook,
    LogBufferWriter,
    TensorboardLoggerHook,
    write_metrics,
)
from hookloop_dialects.imix.log_buffer import LogBufferStorage, get_log_buffer

__all__ = [
    "CheckPointHook",
    "CommonMetricLoggerHook",
    "JSONLoggerHook",
    "LogBufferStorage",
    "LogBufferWriter",
    "TensorboardLoggerHook",
    "get_log_buffer",
    "write_metrics",
]
