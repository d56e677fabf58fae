"""Curves of plain characters, for any terminal and any log file."""

from __future__ import annotations

import math
from collections.abc import Sequence


def draw_curve(
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    mark: float | None = None,
    width: int = 64,
    height: int = 14,
) -> str:
    """Draw values over a logarithmic axis.

    Args:
        xs: Where the values are; above 0, rising.
        ys: The values; those that are not finite are left out.
        mark: A place on the axis to mark with a column of dots.
        width: Columns of the drawing.
        height: Lines of it.

    >>> print(draw_curve([1, 10, 100], [2.0, 1.0, 2.0], width=9, height=3))
         2 |*       *
           |
         1 |    *
           +---------
            1     100
    """
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
    if not points:
        return "There is nothing to draw."
    low, high = min(y for _, y in points), max(y for _, y in points)
    grid = [[" "] * width for _ in range(height)]

    def column(x: float) -> int:
        return _place(math.log10(x), math.log10(xs[0]), math.log10(xs[-1]), width)

    if mark is not None:
        for line in grid:
            line[column(mark)] = "."
    for x, y in points:
        grid[height - 1 - _place(y, low, high, height)][column(x)] = "*"
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    left = max(6, *map(len, labels.values()))
    lines = [
        f"{labels.get(number, ''):>{left}} |{''.join(line)}".rstrip()
        for number, line in enumerate(grid)
    ]
    first, last = f"{xs[0]:.3g}", f"{xs[-1]:.3g}"
    axis = f"{' ' * left}  {first}{last:>{width - len(first)}}"
    return "\n".join([*lines, f"{' ' * left} +{'-' * width}", axis])


def _place(value: float, low: float, high: float, count: int) -> int:
    """Return the cell of a value, from 0 to count - 1."""
    if not high > low:
        return 0
    return max(0, min(count - 1, round((value - low) / (high - low) * (count - 1))))
