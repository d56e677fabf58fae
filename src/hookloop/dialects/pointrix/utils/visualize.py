"""``pointrix.utils.visualize``: depths and colours as pictures."""

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
        depth: Of (height, width); 0 is background.
        minmax: What is blue and what is red; by default the nearest and the farthest.
        cmap: Not needed.
        tensorboard: Whether a tensor of (3, height, width) is wanted, or bytes with the colours
            last.
    """
    values = torch.as_tensor(depth).detach().float().cpu().nan_to_num()
    if minmax is None:
        near = values[values > 0]
        minmax = (float(near.min()) if near.numel() else 0.0, float(values.max()))
    low, high = minmax
    place = ((values - low) / (high - low + 1e-8)).clamp(0, 1)
    red, green, blue = ((1.5 - (4 * place - peak).abs()).clamp(0, 1) for peak in (3, 2, 1))
    picture = torch.stack([red, green, blue])
    return picture if tensorboard else visualize_rgb(picture)


def visualize_rgb(rgb: Tensor) -> Picture:
    """Bring colours of (3, height, width) from 0 to 1 to bytes, with the colours last."""
    bytes_ = (255 * rgb.detach().cpu().clamp(0, 1)).to(torch.uint8)
    return np.asarray(bytes_.permute(1, 2, 0))
