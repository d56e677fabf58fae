"""The dialect of iMIX: `HookBase` with six stages and seven levels, and iMIX's own hooks."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks import (
    HOOKS,
    HookBase,
    PriorityStatus,
    build_hook,
    build_hooks,
)
from hookloop_dialects.imix.log_buffer import HistoryBuffer, LogBufferStorage, get_log_buffer
from hookloop_dialects.imix.trainer import EngineFacade

__all__ = [
    "HOOKS",
    "EngineFacade",
    "HistoryBuffer",
    "HookBase",
    "LogBufferStorage",
    "PriorityStatus",
    "build_hook",
    "build_hooks",
    "get_log_buffer",
]
