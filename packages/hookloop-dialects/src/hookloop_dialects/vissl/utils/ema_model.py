"""``vissl.utils.ema_model``: the average of the weights."""

from __future__ import annotations

from hookloop_dialects.vissl.ema_model import ModelEmaV2

__all__ = ["ModelEmaV2"]
