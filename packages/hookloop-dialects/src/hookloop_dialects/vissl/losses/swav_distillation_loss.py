"""`SwAVDistillationLoss`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.losses.distillation_loss import SwAVDistillationLoss

__all__ = ["SwAVDistillationLoss"]
