"""What files of callbacks import from ``lightning.pytorch`` or ``pytorch_lightning``."""

from __future__ import annotations

from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks import Callback
from hookloop_callbacks.stand_ins.lightning.pytorch.core import LightningDataModule, LightningModule
from hookloop_callbacks.stand_ins.lightning.pytorch.trainer import Trainer
from hookloop_callbacks.stand_ins.lightning.seed import seed_everything

__all__ = ["Callback", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]
