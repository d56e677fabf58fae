"""What files of callbacks import from ``lightning``, if it is not installed."""

from __future__ import annotations

from hookloop_callbacks.stand_ins.lightning.pytorch import (
    Callback,
    LightningDataModule,
    LightningModule,
    Trainer,
    seed_everything,
)

__all__ = ["Callback", "LightningDataModule", "LightningModule", "Trainer", "seed_everything"]
