"""``transformers.trainer_utils``."""

from __future__ import annotations

from hookloop_callbacks.on_transformers.names import IntervalStrategy, SaveStrategy

PREFIX_CHECKPOINT_DIR = "checkpoint"

__all__ = ["PREFIX_CHECKPOINT_DIR", "IntervalStrategy", "SaveStrategy"]
