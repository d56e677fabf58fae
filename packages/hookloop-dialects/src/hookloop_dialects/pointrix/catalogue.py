"""Pointrix's own hooks by name."""

from __future__ import annotations

_HOME = "hookloop_dialects.pointrix.hook"

CATALOGUE: dict[str, str] = {
    "CheckPointHook": f"{_HOME}.checkpoint_hook:CheckPointHook",
    "LRSchedulerHook": f"{_HOME}.lr_scheduler_hook:LRSchedulerHook",
    "LogHook": f"{_HOME}.log_hook:LogHook",
}
