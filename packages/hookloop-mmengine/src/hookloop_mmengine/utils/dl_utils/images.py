"""``mmengine.utils.dl_utils``: images of a batch."""

from __future__ import annotations

import numpy as np
from torch import Tensor

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def tensor2imgs(
    tensor: Tensor,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    to_bgr: bool = True,
) -> list[Array]:
    """Return the images of a normalized batch, with the channels last.

    Args:
        tensor: The batch, with 1 or 3 channels.
        mean: What was subtracted; by default nothing.
        std: By what it was divided then; by default by 1.
        to_bgr: Whether the 3 channels are reversed.
    """
    if tensor.ndim != 4 or tensor.size(1) not in (1, 3):
        raise AssertionError("tensor should be a batch of images with 1 or 3 channels")
    channels = tensor.size(1)
    mean, std = mean or (0,) * channels, std or (1,) * channels
    if not channels == len(mean) == len(std) or (channels == 1 and to_bgr):
        raise AssertionError(
            f"mean and std need {channels} values each, and to_bgr needs 3 channels"
        )
    images = tensor.permute(0, 2, 3, 1) * tensor.new_tensor(std) + tensor.new_tensor(mean)
    arrays = images.detach().cpu().numpy()
    if to_bgr:
        arrays = arrays[..., ::-1]
    return [np.ascontiguousarray(array) for array in arrays]
