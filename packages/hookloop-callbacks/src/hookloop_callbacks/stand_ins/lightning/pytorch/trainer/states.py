"""``lightning.pytorch.trainer.states``."""

from __future__ import annotations

from hookloop_callbacks.on_lightning.states import RunningStage, TrainerFn, TrainerStatus

__all__ = ["RunningStage", "TrainerFn", "TrainerStatus"]
