"""``mmengine.logging``: message hub, histories of values and the logger."""

from __future__ import annotations

from hookloop.dialects.mmengine.logging.history_buffer import HistoryBuffer
from hookloop.dialects.mmengine.logging.logger import MMLogger, print_log
from hookloop.dialects.mmengine.logging.message_hub import MessageHub

__all__ = ["HistoryBuffer", "MMLogger", "MessageHub", "print_log"]
