"""The stand-in for ``classy_vision.losses``."""

from __future__ import annotations

from hookloop_dialects.vissl.classy_vision.losses.classy_loss import (
    LOSS_REGISTRY,
    ClassyLoss,
    build_loss,
    register_loss,
)

__all__ = ["LOSS_REGISTRY", "ClassyLoss", "build_loss", "register_loss"]
