"""``mmengine.visualization``: where numbers and pictures go."""

from __future__ import annotations

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
