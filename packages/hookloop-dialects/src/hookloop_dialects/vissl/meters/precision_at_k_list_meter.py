"""`PrecisionAtKListMeter`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.meters.list_meter import PrecisionAtKListMeter

__all__ = ["PrecisionAtKListMeter"]
