"""``imix.utils.history_buffer``: the values of one scalar."""

from __future__ import annotations

from hookloop_dialects.imix.log_buffer import HistoryBuffer

__all__ = ["HistoryBuffer"]
