"""`LambdaCallback`: functions in place of methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookloop_callbacks.stand_ins.lightning.pytorch.callbacks.callback import METHODS, Callback


class LambdaCallback(Callback):
    """Calls functions.

    Args:
        functions: By the names of the methods.
    """

    def __init__(self, **functions: Callable[..., Any] | None) -> None:
        for name, function in functions.items():
            if name not in METHODS:
                raise TypeError(f"LambdaCallback() got an unexpected keyword argument '{name}'")
            if function is not None:
                setattr(self, name, function)
