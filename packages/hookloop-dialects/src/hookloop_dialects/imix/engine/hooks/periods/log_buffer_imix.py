"""``imix.engine.hooks.periods.log_buffer_imix``: the log buffer."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.log_writers import LogBufferWriter
from hookloop_dialects.imix.log_buffer import HistoryBuffer, LogBufferStorage, get_log_buffer

__all__ = ["HistoryBuffer", "LogBufferStorage", "LogBufferWriter", "get_log_buffer"]
