"""``classy_vision.generic.perf_stats``: the times of parts of an iteration."""

from __future__ import annotations

from hookloop_dialects.vissl.utils.perf_stats import PerfMetric, PerfStats, PerfTimer

__all__ = ["PerfMetric", "PerfStats", "PerfTimer"]
