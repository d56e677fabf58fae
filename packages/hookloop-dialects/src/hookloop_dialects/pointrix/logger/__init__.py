"""Pointrix's writers and consoles."""

from __future__ import annotations

from hookloop_dialects.pointrix.logger.writer import (
    LOGGER_REGISTRY,
    ErrorLogger,
    Logger,
    ProgressLogger,
    TensorboardWriter,
    WandbWriter,
    Writer,
    parse_writer,
)

__all__ = [
    "LOGGER_REGISTRY",
    "ErrorLogger",
    "Logger",
    "ProgressLogger",
    "TensorboardWriter",
    "WandbWriter",
    "Writer",
    "parse_writer",
]
