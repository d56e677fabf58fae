"""``mmengine.visualization``: draw on an image."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from torch import Tensor

from hookloop_mmengine.missing import message_for
from hookloop_mmengine.visualization.canvas import Canvas
from hookloop_mmengine.visualization.values import (
    Array,
    Colors,
    as_rgb,
    check_type,
    check_type_and_length,
    color_val_matplotlib,
    tensor2ndarray,
    value2list,
)

Values = Array | Tensor
Widths = float | list[float]


class Drawing(Canvas):
    """An image, and what is drawn on it.

    Each method returns the object itself, so that calls can be chained.
    """

    @staticmethod
    def draw_featmap(*args: object, **kwargs: object) -> Any:  # noqa: ANN401
        """Name the graft."""
        raise NotImplementedError(message_for("draw_featmap"))

    def draw_points(
        self,
        positions: Values,
        colors: Colors = "g",
        marker: str | None = None,
        sizes: Values | None = None,
    ) -> Self:
        """Draw points at ``(x, y)``."""
        points = _rows("positions", positions, 2)
        colored = cast("Any", color_val_matplotlib(colors))
        self.ax_save.scatter(points[:, 0], points[:, 1], c=colored, s=sizes, marker=marker)
        return self

    def draw_texts(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        texts: str | list[str],
        positions: Values,
        font_sizes: float | list[float] | None = None,
        colors: Colors = "g",
        vertical_alignments: str | list[str] = "top",
        horizontal_alignments: str | list[str] = "left",
        font_families: str | list[str] = "sans-serif",
        bboxes: dict[str, object] | list[dict[str, object]] | None = None,
        font_properties: object = None,
    ) -> Self:
        """Write texts at ``(x, y)``; each setting is one for all, or a list."""
        check_type("texts", texts, (str, list))
        lines = [texts] if isinstance(texts, str) else texts
        points = _rows("positions", positions, 2)
        if len(points) != len(lines):
            raise AssertionError(f"There are {len(lines)} texts and {len(points)} positions.")
        self._warn_if_outside("text", points)
        if font_sizes is None:
            font_sizes = self._default_font_size
        settings = {
            "size": (font_sizes, (int, float)),
            "color": (colors, (str, tuple)),
            "verticalalignment": (vertical_alignments, (str,)),
            "horizontalalignment": (horizontal_alignments, (str,)),
            "family": (font_families, (str,)),
            "bbox": (bboxes, (dict, type(None))),
            "fontproperties": (font_properties, (object,)),
        }
        listed: dict[str, list[Any]] = {}
        for name, (value, kinds) in settings.items():
            check_type_and_length(name, value, (*kinds, list), len(lines))
            single = kinds if not isinstance(value, list) else ()
            listed[name] = value2list(value, single, len(lines))
        listed["color"] = cast("list[Any]", color_val_matplotlib(listed["color"]))
        for index, (line, (x, y)) in enumerate(zip(lines, points.tolist(), strict=True)):
            chosen = {name: values[index] for name, values in listed.items()}
            self.ax_save.text(x, y, line, **chosen)
        return self

    def draw_lines(
        self,
        x_datas: Values,
        y_datas: Values,
        colors: Colors = "g",
        line_styles: str | list[str] = "-",
        line_widths: Widths = 2,
    ) -> Self:
        """Draw lines; each row of ``x_datas`` and ``y_datas`` has the two ends of one."""
        from matplotlib.collections import LineCollection

        ends_x, ends_y = _rows("x_datas", x_datas, 2), _rows("y_datas", y_datas, 2)
        if ends_x.shape != ends_y.shape:
            raise AssertionError("`x_datas` and `y_datas` should have the same shape")
        lines = np.stack((ends_x, ends_y), axis=-1)
        self._warn_if_outside("line", lines)
        self.ax_save.add_collection(
            LineCollection(
                lines.tolist(),
                colors=cast("Any", color_val_matplotlib(colors)),
                linestyles=line_styles,
                linewidths=line_widths,
            )
        )
        return self

    def draw_circles(
        self,
        center: Values,
        radius: Values,
        edge_colors: Colors = "g",
        line_styles: str | list[str] = "-",
        line_widths: Widths = 2,
        face_colors: Colors = "none",
        alpha: float = 0.8,
    ) -> Self:
        """Draw circles around ``(x, y)``."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Circle

        check_type("radius", radius, (np.ndarray, Tensor))
        centers, radii = _rows("center", center, 2), tensor2ndarray(radius)
        if len(centers) != radii.shape[0]:
            raise AssertionError(f"There are {len(centers)} centers and {radii.shape[0]} radii.")
        reach = radii.reshape(-1, 1)
        self._warn_if_outside("circle", np.stack((centers - reach, centers + reach)))
        circles = [
            Circle((x, y), size)
            for (x, y), size in zip(centers.tolist(), radii.tolist(), strict=True)
        ]
        style = self._style(len(circles), edge_colors, line_styles, line_widths, face_colors)
        self.ax_save.add_collection(PatchCollection(circles, alpha=alpha, **style))
        return self

    def draw_bboxes(
        self,
        bboxes: Values,
        edge_colors: Colors = "g",
        line_styles: str | list[str] = "-",
        line_widths: Widths = 2,
        face_colors: Colors = "none",
        alpha: float = 0.8,
    ) -> Self:
        """Draw boxes ``(x1, y1, x2, y2)``."""
        boxes = _rows("bboxes", bboxes, 4)
        if not (boxes[:, :2] <= boxes[:, 2:]).all():
            raise AssertionError(
                "The first corner of a box must not be right of or below the second."
            )
        self._warn_if_outside("bbox", boxes.reshape(-1, 2, 2))
        corners = list(boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2))
        # The warning was for all of them.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*out of bounds")
            return self.draw_polygons(
                corners, edge_colors, line_styles, line_widths, face_colors, alpha
            )

    def draw_polygons(
        self,
        polygons: Values | Sequence[Values],
        edge_colors: Colors = "g",
        line_styles: str | list[str] = "-",
        line_widths: Widths = 2,
        face_colors: Colors = "none",
        alpha: float = 0.8,
    ) -> Self:
        """Draw polygons; each has one ``(x, y)`` per row."""
        from matplotlib.collections import PolyCollection

        listed = [polygons] if isinstance(polygons, np.ndarray | Tensor) else polygons
        shapes = [_rows("polygons", polygon, 2) for polygon in listed]
        for shape in shapes:
            self._warn_if_outside("polygon", shape)
        style = self._style(len(shapes), edge_colors, line_styles, line_widths, face_colors)
        self.ax_save.add_collection(PolyCollection(shapes, alpha=alpha, **style))
        return self

    def draw_binary_masks(
        self, binary_masks: Values, colors: Colors = "g", alphas: float | list[float] = 0.8
    ) -> Self:
        """Color the pixels of masks; each has the size of the image."""
        check_type("binary_masks", binary_masks, (np.ndarray, Tensor))
        masks = tensor2ndarray(binary_masks)
        if masks.dtype != np.bool_:
            raise AssertionError(f"The dtype of binary_masks should be np.bool_, not {masks.dtype}")
        masks = masks[None] if masks.ndim == 2 else masks
        image = self.get_image()
        if image.shape[:2] != masks.shape[1:]:
            raise AssertionError("`binary_masks` must have the same shape with image")
        check_type_and_length("colors", colors, (str, tuple, list), len(masks))
        listed = value2list(colors, (str, tuple), len(masks))
        weights = value2list(alphas, (int, float), len(masks))
        # Not strict: there may be more colors than masks.
        for mask, color, weight in zip(masks, listed, weights, strict=False):
            colored = np.where(mask[..., None], np.array(as_rgb(color), np.uint8), image)
            image = blend(image, colored, weight)
        self._put(image, "nearest")
        return self

    # --- parts

    def _style(
        self,
        count: int,
        edges: Colors,
        line_styles: str | list[str],
        line_widths: Widths,
        faces: Colors,
    ) -> dict[str, Any]:
        widths = value2list(line_widths, (int, float), count)
        # Thin enough for a small image.
        limit = self._default_font_size / 4
        return {
            "edgecolors": color_val_matplotlib(edges),
            "facecolors": color_val_matplotlib(faces),
            "linestyles": line_styles,
            "linewidths": [min(max(width, 1), limit) for width in widths],
        }

    def _is_posion_valid(self, position: Array) -> bool:
        """Return whether all ``(x, y)`` are inside the image."""
        limits = np.array([self.width, self.height])
        return bool(((position >= 0) & (position < limits)).all())

    def _warn_if_outside(self, what: str, positions: Array) -> None:
        if not self._is_posion_valid(positions):
            warnings.warn(
                f"Warning: The {what} is out of bounds, the drawn {what} may not be in the image",
                UserWarning,
                stacklevel=3,
            )


def _rows(name: str, values: Values, length: int) -> Array:
    """Return values as an array of rows; one row may come alone."""
    check_type(name, values, (np.ndarray, Tensor))
    array = tensor2ndarray(values)
    array = array[None] if array.ndim == 1 else array
    if array.shape[-1] != length:
        raise AssertionError(f"The shape of `{name}` should be (N, {length}), not {array.shape}")
    return array


def blend(first: Array, second: Array, weight: float) -> Array:
    """Return the mean of two images, with a weight of the second one."""
    mixed = first.astype(np.float64) * (1 - weight) + second.astype(np.float64) * weight
    return cast("Array", np.clip(np.rint(mixed), 0, 255).astype(np.uint8))
