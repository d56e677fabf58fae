"""`PrecisionAtKMeter`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.meters.top_k_meter import PrecisionAtKMeter

__all__ = ["PrecisionAtKMeter"]
