"""``mmengine.visualization``: feature maps as pictures."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hookloop.dialects import require
from hookloop_mmengine.visualization.values import Array, tensor2ndarray

# The colors of a heat map, from blue to red: a hill of each channel, which is flat at the top.
_PEAKS = np.array([3, 2, 1])
_STEPS = np.arange(256)[:, None] * (4 / 255)
_JET = np.rint(np.clip(1.5 - np.abs(_STEPS - _PEAKS), 0, 1) * 255).astype(np.uint8)


def blend(first: Array, second: Array, weight: float) -> Array:
    """Return the mean of two images, with a weight of the second one."""
    mixed = first.astype(np.float64) * (1 - weight) + second.astype(np.float64) * weight
    return cast("Array", np.clip(np.rint(mixed), 0, 255).astype(np.uint8))


def convert_overlay_heatmap(
    feat_map: Array | Tensor, img: Array | None = None, alpha: float = 0.5
) -> Array:
    """Return a map in the colors of a heat map, over an image if there is one.

    Args:
        feat_map: Two dimensions, or three with 1 or 3 channels first.
        img: The image, in RGB.
        alpha: The weight of the map over the image.
    """
    if not (feat_map.ndim == 2 or (feat_map.ndim == 3 and feat_map.shape[0] in (1, 3))):
        raise AssertionError(f"feat_map should be a map or have 1 or 3 channels: {feat_map.shape}")
    values = tensor2ndarray(feat_map).astype(np.float64)
    low, high = values.min(), values.max()
    # As MMEngine does: rounded down, and a map of one value is the lowest everywhere.
    levels = ((values - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    if levels.ndim == 3 and levels.shape[0] == 3:
        # OpenCV colors the gray picture of three channels, in its order of blue, green, red.
        levels = np.rint(np.tensordot((0.114, 0.587, 0.299), levels, 1)).astype(np.uint8)
    elif levels.ndim == 3:
        levels = levels[0]
    heat = _JET[levels]
    return heat if img is None else blend(img, heat, alpha)


def draw_featmap(
    featmap: Tensor,
    overlaid_image: Array | None = None,
    channel_reduction: str | None = "squeeze_mean",
    topk: int = 20,
    arrangement: tuple[int, int] = (4, 5),
    resize_shape: tuple[int, int] | None = None,
    alpha: float = 0.5,
) -> Array:
    """Return the picture of a feature map.

    Args:
        featmap: Channels, height and width.
        overlaid_image: An image behind the map, in RGB.
        channel_reduction: ``squeeze_mean`` for the mean of the channels, ``select_max`` for the
            strongest one, None for several beside each other.
        topk: How many of the strongest channels are shown beside each other; 0 for a map of 1
            or 3 channels as it is.
        arrangement: The rows and columns of the channels.
        resize_shape: The height and width of the picture.
        alpha: The weight of the map over the image.
    """
    if not isinstance(featmap, Tensor):
        raise AssertionError(f"`featmap` should be torch.Tensor, but got {type(featmap)}")
    if featmap.ndim != 3:
        raise AssertionError(f"Input dimension must be 3, but got {featmap.ndim}")
    featmap, image = _fitted(featmap.detach().cpu(), overlaid_image, resize_shape)
    if channel_reduction == "select_max":
        return convert_overlay_heatmap(featmap[_strongest(featmap, 1)], image, alpha)
    if channel_reduction == "squeeze_mean":
        return convert_overlay_heatmap(featmap.mean(0), image, alpha)
    if channel_reduction is not None:
        raise AssertionError(
            f'Mode only support "squeeze_mean", "select_max", but got {channel_reduction}'
        )
    if topk > 0:
        return _beside_each_other(featmap, image, topk, arrangement, alpha)
    if featmap.shape[0] not in (1, 3):
        raise AssertionError(
            "The input tensor channel dimension must be 1 or 3 when topk is less than 1, but it "
            f"is {featmap.shape[0]}. Use channel_reduction, or set topk greater than 0."
        )
    return convert_overlay_heatmap(featmap, image, alpha)


def _fitted(
    featmap: Tensor, image: Array | None, shape: tuple[int, int] | None
) -> tuple[Tensor, Array | None]:
    """Return the map and the image with one size."""
    if image is not None and image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    if image is not None and image.shape[:2] != tuple(featmap.shape[1:]):
        warnings.warn(
            f"The image has the size {image.shape[:2]} and the feature map "
            f"{tuple(featmap.shape[1:])}, so the map is interpolated.",
            stacklevel=3,
        )
    size = shape or (image.shape[:2] if image is not None else None)
    if size is not None and tuple(featmap.shape[1:]) != tuple(size):
        featmap = _resized(featmap, size)
    if image is not None and size is not None and image.shape[:2] != tuple(size):
        channels = torch.from_numpy(image.copy()).permute(2, 0, 1).float()
        image = _resized(channels, size).round().permute(1, 2, 0).to(torch.uint8).numpy()
    return featmap, image


def _resized(values: Tensor, size: tuple[int, ...]) -> Tensor:
    return functional.interpolate(values[None], size, mode="bilinear", align_corners=False)[0]


def _strongest(featmap: Tensor, count: int) -> Tensor:
    return torch.topk(featmap.sum(dim=(1, 2)), count).indices


def _beside_each_other(
    featmap: Tensor, image: Array | None, topk: int, arrangement: tuple[int, int], alpha: float
) -> Array:
    require("matplotlib", extra="plots", who="draw_featmap")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from hookloop_mmengine.visualization.canvas import img_from_canvas

    rows, columns = arrangement
    if rows * columns < topk:
        raise AssertionError(f"An arrangement of {arrangement} has less than {topk} places.")
    channels, height, width = featmap.shape
    # Not pyplot, which would keep the figure.
    figure = Figure(frameon=False)
    canvas = FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=0, hspace=0)
    dpi = figure.get_dpi()
    # A little more, or rounding down could lose a pixel.
    figure.set_size_inches((width * columns + 1e-2) / dpi, (height * rows + 1e-2) / dpi)
    for place, channel in enumerate(_strongest(featmap, min(channels, topk)), 1):
        axes = figure.add_subplot(rows, columns, place)
        axes.axis("off")
        axes.text(2, 15, f"channel: {channel}", fontsize=10)
        axes.imshow(convert_overlay_heatmap(featmap[channel], image, alpha))
    return img_from_canvas(canvas)
