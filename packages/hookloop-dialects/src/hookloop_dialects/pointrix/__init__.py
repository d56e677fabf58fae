"""The dialect of Pointrix: `Hook`, its writers, and Pointrix's own hooks."""

from __future__ import annotations

from hookloop_dialects.pointrix.hook import HOOK_REGISTRY, Hook, parse_hooks
from hookloop_dialects.pointrix.logger.writer import (
    ErrorLogger,
    Logger,
    ProgressLogger,
    Writer,
    parse_writer,
)
from hookloop_dialects.pointrix.trainer import TrainerFacade

__all__ = [
    "HOOK_REGISTRY",
    "ErrorLogger",
    "Hook",
    "Logger",
    "ProgressLogger",
    "TrainerFacade",
    "Writer",
    "parse_hooks",
    "parse_writer",
]
