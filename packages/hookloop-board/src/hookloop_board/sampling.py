"""Fewer points for the same picture: means in buckets, and the extremes of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

BLOCK = 128
"""Values that are averaged at once."""

MOST_NONFINITE = 200
"""How many values that are not finite are listed."""


@dataclass(frozen=True)
class Sampled:
    """A curve to draw.

    Attributes:
        total: How many points it stands for, without those beside the part.
        x: The position of each point.
        y: Its value, NaN for a gap; in a bucket, the mean of the finite values.
        low: The least value of each bucket; None where every point is its own.
        high: The largest one.
        nonfinite: Position and value of what is not finite, some of it if there is a lot.
        smooth: The moving average at each point, of all values before it; None if not asked for.
    """

    total: int
    x: Numbers
    y: Numbers
    low: Numbers | None
    high: Numbers | None
    nonfinite: list[tuple[float, float]]
    smooth: Numbers | None = None


def sample(
    x: Numbers, y: Numbers, points: int, begin: float, end: float, weight: float = 0.0
) -> Sampled:
    """Return the part of a curve between two positions, of at most ``points`` points.

    The points on both sides of it come with it, so that lines continue to the edges of a picture.

    Args:
        x: The positions, in any order; those that are NaN are left out.
        y: The values.
        points: The most points.
        begin: Where the part begins; minus infinity for the beginning.
        end: Where it ends.
        weight: How much the moving average keeps of what came before, from 0 to below 1.
    """
    known = ~np.isnan(x)
    if not known.all():
        x, y = x[known], y[known]
    if len(x) > 1 and (np.diff(x) < 0).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    first = int(np.searchsorted(x, begin, "left"))
    last = max(first, int(np.searchsorted(x, end, "right")))
    total = last - first
    around = slice(max(first - 1, 0), last + 1)
    smooth = smoothed(y, weight)[around] if weight else None
    x, y = x[around], y[around]
    finite = np.isfinite(y)
    odd = np.flatnonzero(~finite)
    if len(odd) > MOST_NONFINITE:  # The first ones, and some of the others.
        odd = odd[np.linspace(0, len(odd) - 1, MOST_NONFINITE).astype(int)]
    nonfinite = [(float(x[place]), float(y[place])) for place in odd]
    if len(x) <= points:
        return Sampled(total, x, np.where(finite, y, np.nan), None, None, nonfinite, smooth)
    starts = np.linspace(0, len(x), points, endpoint=False).astype(np.int64)
    counts = np.add.reduceat(finite.astype(np.float64), starts)
    empty = counts == 0
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(np.where(finite, y, 0.0), starts)
    low = np.minimum.reduceat(np.where(finite, y, np.inf), starts)
    high = np.maximum.reduceat(np.where(finite, y, -np.inf), starts)
    ends = np.append(starts[1:], len(x)) - 1
    for values in (sums, low, high):
        values[empty] = np.nan
    # Rounding, or values near the largest number, must not put the mean outside.
    mean = np.clip(sums / np.maximum(counts, 1), low, high)
    if smooth is not None:
        smooth = np.add.reduceat(np.where(finite, smooth, 0.0), starts) / np.maximum(counts, 1)
        smooth[empty] = np.nan
    return Sampled(total, (x[starts] + x[ends]) / 2, mean, low, high, nonfinite, smooth)


def smoothed(values: Numbers, weight: float) -> Numbers:
    """Return the moving average of values, without a pull towards zero at the beginning.

    Of all of them, so that it is the same however much of a curve is looked at. Gaps stay gaps.

    >>> smoothed(np.array([1.0, np.nan, 3.0]), 0.5).round(3).tolist()
    [1.0, nan, 2.333]
    """
    is_known = np.isfinite(values)
    known = values[is_known]
    rows = -(-len(known) // BLOCK)
    # Block by block: within one by a product of matrices, and what is left of it to the next.
    blocks = np.zeros(rows * BLOCK)
    blocks[: len(known)] = known
    steps = np.arange(BLOCK)
    decay = np.tril(weight ** np.maximum(steps[:, None] - steps, 0)) * (1 - weight)
    inner = blocks.reshape(rows, BLOCK) @ decay.T
    carried, kept = np.zeros(rows), weight**BLOCK
    for row in range(1, rows):
        carried[row] = inner[row - 1, -1] + carried[row - 1] * kept
    sums = (inner + carried[:, None] * weight ** (steps + 1)).reshape(-1)[: len(known)]
    found = np.full(len(values), np.nan)
    found[is_known] = sums / (1 - weight ** np.arange(1.0, len(known) + 1))
    return found


def to_list(values: Numbers) -> list[float | None]:
    """Return numbers as JSON can hold them: a gap is null."""
    if np.isfinite(values).all():
        whole: list[float | None] = values.tolist()
        return whole
    return [value if value == value and abs(value) != np.inf else None for value in values.tolist()]
