"""``pointrix.utils.visualize``: convert depths, colours and motions to pictures."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

Picture = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def visualize_depth(
    depth: Tensor | Picture,
    minmax: tuple[float, float] | None = None,
    cmap: object = None,
    tensorboard: bool = False,
) -> Tensor | Picture:
    """Colour depths from blue, near, to red, far.

    Args:
        depth: Depths of shape (height, width); 0 is background.
        minmax: The depths for blue and red; by default the nearest and the farthest.
        cmap: Not used.
        tensorboard: Whether to return a tensor of shape (3, height, width) instead of bytes with
            the colours last.
    """
    values = torch.as_tensor(depth).detach().float().cpu().nan_to_num()
    if minmax is None:
        near = values[values > 0]  # Without the background, which would be the nearest.
        minmax = (float(near.min()) if near.numel() else 0.0, float(values.max()))
    low, high = minmax
    share = ((values - low) / (high - low + 1e-8)).clamp(0, 1)  # Not 0 / 0 for a flat picture.
    # The map "jet": each colour is a trapezoid around its own peak.
    red, green, blue = ((1.5 - (4 * share - peak).abs()).clamp(0, 1) for peak in (3, 2, 1))
    picture = torch.stack([red, green, blue])
    return picture if tensorboard else visualize_rgb(picture)


def visualize_rgb(rgb: Tensor) -> Picture:
    """Convert colours of shape (3, height, width) from 0..1 to bytes, with the colours last."""
    bytes_ = (255 * rgb.detach().cpu().clamp(0, 1)).to(torch.uint8)
    return np.asarray(bytes_.permute(1, 2, 0))


def visualize_flow(flow: Tensor | Picture, tensorboard: bool = False) -> Tensor | Picture:
    """Colour motions: the hue is the direction, and the strength of the colour the length.

    Args:
        flow: Motions of shape (2, height, width) or (height, width, 2).
        tensorboard: As in `visualize_depth`.
    """
    values = torch.as_tensor(flow).detach().float().cpu().nan_to_num()
    across, down = values if values.shape[0] == 2 else values.unbind(-1)
    length = torch.hypot(across, down)
    strength = length / (length.max() + 1e-8)
    turn = torch.atan2(down, across) / (2 * torch.pi) % 1
    parts = []
    for own in (0.0, 1 / 3, 2 / 3):  # The direction in which each colour is brightest.
        away = ((turn - own + 0.5) % 1 - 0.5).abs()
        parts.append(1 - strength * (1 - (2 - 6 * away).clamp(0, 1)))
    picture = torch.stack(parts)
    return picture if tensorboard else visualize_rgb(picture)
