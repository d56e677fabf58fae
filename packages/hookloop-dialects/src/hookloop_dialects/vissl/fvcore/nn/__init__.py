"""The stand-in for ``fvcore.nn``."""

from __future__ import annotations

from hookloop_dialects.vissl.fvcore.nn.precise_bn import get_bn_modules, update_bn_stats

__all__ = ["get_bn_modules", "update_bn_stats"]
