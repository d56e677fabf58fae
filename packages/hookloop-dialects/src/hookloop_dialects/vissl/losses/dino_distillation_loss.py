"""`DINODistillationLoss`, in the module of its name."""

from __future__ import annotations

from hookloop_dialects.vissl.losses.distillation_loss import DINODistillationLoss

__all__ = ["DINODistillationLoss"]
