"""``imix.engine.hooks.periods.common_metric``: the logger for the terminal."""

from __future__ import annotations

from hookloop_dialects.imix.engine.hooks.log_writers import CommonMetricLoggerHook, write_metrics

__all__ = ["CommonMetricLoggerHook", "write_metrics"]
