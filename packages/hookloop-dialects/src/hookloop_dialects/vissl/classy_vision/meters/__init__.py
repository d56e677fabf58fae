"""The stand-in for ``classy_vision.meters``."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.meters.accuracy_meter import AccuracyMeter
from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter
from hookloop_dialects.vissl.classy_vision.meters.precision_meter import PrecisionAtKMeter
from hookloop_dialects.vissl.classy_vision.meters.recall_meter import RecallAtKMeter
from hookloop_dialects.vissl.classy_vision.meters.registry import (
    METER_REGISTRY,
    build_meter,
    build_meters,
    register_meter,
)

__all__ = [
    "METER_REGISTRY",
    "AccuracyMeter",
    "ClassyMeter",
    "PrecisionAtKMeter",
    "RecallAtKMeter",
    "build_meter",
    "build_meters",
    "register_meter",
]
