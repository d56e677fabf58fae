"""``mmengine.visualization``: where numbers and pictures go."""

from __future__ import annotations

from typing import NoReturn

from hookloop.dialects.mmengine.missing import refuse
from hookloop.dialects.mmengine.visualization.backends import (
    BaseVisBackend,
    LocalVisBackend,
    TensorboardVisBackend,
)
from hookloop.dialects.mmengine.visualization.visualizer import EmittingVisualizer, Visualizer

__all__ = [
    "BaseVisBackend",
    "EmittingVisualizer",
    "LocalVisBackend",
    "TensorboardVisBackend",
    "Visualizer",
]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
