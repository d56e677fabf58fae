"""``mmengine.visualization.utils``: what drawing functions are made of."""

from __future__ import annotations

from hookloop_mmengine.visualization.canvas import img_from_canvas, wait_continue
from hookloop_mmengine.visualization.values import (
    check_length,
    check_type,
    check_type_and_length,
    color_str2rgb,
    color_val_matplotlib,
    tensor2ndarray,
    value2list,
)

__all__ = [
    "check_length",
    "check_type",
    "check_type_and_length",
    "color_str2rgb",
    "color_val_matplotlib",
    "img_from_canvas",
    "tensor2ndarray",
    "value2list",
    "wait_continue",
]
