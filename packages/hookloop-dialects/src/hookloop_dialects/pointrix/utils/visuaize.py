"""``pointrix.utils.visuaize``: `visualize` as older versions spell it."""

from __future__ import annotations

from hookloop_dialects.pointrix.utils.visualize import (
    visualize_depth,
    visualize_flow,
    visualize_rgb,
)

__all__ = ["visualize_depth", "visualize_flow", "visualize_rgb"]
