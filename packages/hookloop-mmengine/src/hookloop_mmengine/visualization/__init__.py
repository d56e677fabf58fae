"""``mmengine.visualization``: the destinations of numbers and images."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.visualization.backends import (
    BaseVisBackend,
    LocalVisBackend,
    TensorboardVisBackend,
)
from hookloop_mmengine.visualization.visualizer import EmittingVisualizer, Visualizer

__all__ = [
    "BaseVisBackend",
    "EmittingVisualizer",
    "LocalVisBackend",
    "TensorboardVisBackend",
    "Visualizer",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
