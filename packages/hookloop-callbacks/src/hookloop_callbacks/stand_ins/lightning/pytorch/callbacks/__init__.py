"""``lightning.pytorch.callbacks``: the base class, and native hooks to use for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop_callbacks.on_lightning.own_callbacks import INSTEAD
from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks.callback import Callback
from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks.early_stopping import EarlyStopping
from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks.lambda_function import LambdaCallback

__all__ = ["Callback", "EarlyStopping", "LambdaCallback"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        instead = INSTEAD.get(name)
        # An ImportError would lose the advice: Python replaces the text of an AttributeError.
        if name.startswith("_") or not name[:1].isupper():
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        advice = f" Use {instead}." if isinstance(instead, str) else ""
        if callable(instead):
            advice = " Use hookloop.hooks.SaveCheckpoint."
        raise ImportError(
            f"hookloop stands in for lightning, which is not installed, and has no {name}.{advice}"
        )
