"""The stand-in for ``vissl.meters``."""

from __future__ import annotations

from hookloop.dialects.vissl.classy_vision.meters.registry import build_meter, register_meter
from hookloop.dialects.vissl.meters.accuracy_list_meter import AccuracyListMeter
from hookloop.dialects.vissl.meters.precision_at_k_list_meter import PrecisionAtKListMeter
from hookloop.dialects.vissl.meters.recall_at_k_list_meter import RecallAtKListMeter

__all__ = [
    "AccuracyListMeter",
    "PrecisionAtKListMeter",
    "RecallAtKListMeter",
    "build_meter",
    "register_meter",
]
