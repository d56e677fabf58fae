"""`TimeMetricsHook`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.hooks.log_hooks import LogPerfTimeMetricsHook as TimeMetricsHook

__all__ = ["TimeMetricsHook"]
