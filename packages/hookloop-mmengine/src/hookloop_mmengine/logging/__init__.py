"""``mmengine.logging``: message hub, histories of values and the logger."""

from __future__ import annotations

from hookloop_mmengine.logging.history_buffer import HistoryBuffer
from hookloop_mmengine.logging.logger import MMLogger, print_log
from hookloop_mmengine.logging.message_hub import MessageHub

__all__ = ["HistoryBuffer", "MMLogger", "MessageHub", "print_log"]
