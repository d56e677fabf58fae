"""`AccuracyListMeter`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.meters.list_meter import AccuracyListMeter

__all__ = ["AccuracyListMeter"]
