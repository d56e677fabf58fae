"""What files of callbacks import from ``transformers``, if it is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop_callbacks.stand_ins.transformers.trainer_callback import (
    EarlyStoppingCallback,
    ExportableState,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
)
from hookloop_callbacks.stand_ins.transformers.trainer_utils import IntervalStrategy, SaveStrategy
from hookloop_callbacks.stand_ins.transformers.training_args import TrainingArguments

__all__ = [
    "EarlyStoppingCallback",
    "ExportableState",
    "IntervalStrategy",
    "PrinterCallback",
    "SaveStrategy",
    "TrainerCallback",
    "TrainerControl",
    "TrainerState",
    "TrainingArguments",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name.startswith("_") or not name[:1].isupper():
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        instead = " Use hookloop.Trainer." if name.endswith("Trainer") else ""
        raise ImportError(
            "hookloop stands in for the callbacks of transformers, which is not installed, and "
            f"has no {name}.{instead}"
        )
