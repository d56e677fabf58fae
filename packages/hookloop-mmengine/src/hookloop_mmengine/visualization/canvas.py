"""``mmengine.visualization``: an image, and the masks that are drawn on it.

Of what MMEngine draws, hook files of public projects were found to need nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self, cast

import numpy as np
from torch import Tensor

from hookloop.dialects import require
from hookloop_mmengine.missing import GRAFT

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Color = str | tuple[float, ...]


class Canvas:
    """An image, in RGB, and what is drawn on it."""

    _image: Array | None = None

    def set_image(self, image: Array) -> None:
        """Begin with an image."""
        if image is None:
            raise AssertionError("An image is needed.")
        self._image = image.astype("uint8")
        self.height, self.width = image.shape[:2]

    def get_image(self) -> Array:
        """Return the image with all that was drawn on it."""
        if self._image is None:
            raise AssertionError("Please set image using `set_image`")
        return self._image.copy()

    def draw_binary_masks(
        self,
        binary_masks: Array | Tensor,
        colors: Color | Sequence[Color] = "g",
        alphas: float | Sequence[float] = 0.8,
    ) -> Self:
        """Color the pixels of masks; each has the size of the image."""
        masks = (
            binary_masks.detach().cpu().numpy()
            if isinstance(binary_masks, Tensor)
            else binary_masks
        )
        if masks.dtype != np.bool_:
            raise AssertionError(f"The dtype of binary_masks should be np.bool_, not {masks.dtype}")
        masks = masks[None] if masks.ndim == 2 else masks
        image = self.get_image()
        if image.shape[:2] != masks.shape[1:]:
            raise AssertionError("`binary_masks` must have the same shape with image")
        listed = [colors] * len(masks) if isinstance(colors, str | tuple) else colors
        weights = [alphas] * len(masks) if isinstance(alphas, int | float) else alphas
        if min(len(listed), len(weights)) < len(masks):
            raise AssertionError(
                f"There are {len(masks)} masks, {len(listed)} colors and {len(weights)} alphas."
            )
        # Not strict: there may be more colors than masks.
        for mask, color, weight in zip(masks, listed, weights, strict=False):
            colored = np.where(mask[..., None], np.array(_rgb(color), np.uint8), image)
            # As OpenCV: computed with fractions, then rounded.
            mixed = image * (1 - weight) + colored * weight
            image = np.clip(np.rint(mixed), 0, 255).astype(np.uint8)
        self._image = image
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("draw_") or name in ("show", "fig_save", "ax_save"):
            # An AttributeError, so that hasattr works.
            raise AttributeError(
                f"Visualizer.{name} is not offered by hookloop: of pictures, only masks are drawn. "
                f"Draw it with matplotlib and pass it to add_image; or {GRAFT}."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _rgb(color: Color) -> tuple[float, ...]:
    if isinstance(color, str):
        require("matplotlib", extra="plots", who="A color that is given by its name")
        from matplotlib.colors import to_rgb

        color = tuple(int(channel * 255) for channel in to_rgb(color))
    if len(color) != 3 or not all(0 <= channel <= 255 for channel in color):
        raise AssertionError(f"A color has three numbers from 0 to 255, but got {color}")
    return cast("tuple[float, ...]", color)
