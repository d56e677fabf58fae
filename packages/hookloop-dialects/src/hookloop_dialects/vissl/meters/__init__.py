"""The stand-in for ``vissl.meters``."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.meters.registry import build_meter, register_meter
from hookloop_dialects.vissl.meters.accuracy_list_meter import AccuracyListMeter
from hookloop_dialects.vissl.meters.precision_at_k_list_meter import PrecisionAtKListMeter
from hookloop_dialects.vissl.meters.recall_at_k_list_meter import RecallAtKListMeter

__all__ = [
    "AccuracyListMeter",
    "PrecisionAtKListMeter",
    "RecallAtKListMeter",
    "build_meter",
    "register_meter",
]
