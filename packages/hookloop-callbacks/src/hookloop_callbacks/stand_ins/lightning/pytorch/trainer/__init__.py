"""``lightning.pytorch.trainer``."""

from __future__ import annotations

from hookloop_callbacks.stand_ins.lightning.pytorch.trainer.trainer import Trainer

__all__ = ["Trainer"]
