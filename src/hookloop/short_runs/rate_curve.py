"""The loss over the learning rate: smoothed, and where it falls fastest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMOOTHING = 0.8
"""How much of the smoothed loss is that of its neighbours."""
FEWEST = 10
"""Iterations before a search may end early, and that a suggestion needs."""
BEGINS = 0.1
"""The part of the whole fall after which the loss counts as falling."""
NEAR = 0.5
"""How far around a rate its slope is measured, in decades."""


def smooth(losses: list[float], highest: float) -> list[float]:
    """Average each loss with those before and after it, so that the curve is not shifted."""
    clipped = [min(loss, highest) for loss in losses]
    both = np.array([_running_means(clipped), _running_means(clipped[::-1])[::-1]])
    return [float(value) for value in both.mean(0)]


def _running_means(values: list[float]) -> list[float]:
    total, weight, means = 0.0, 0.0, []
    for value in values:
        total = SMOOTHING * total + (1 - SMOOTHING) * value
        weight = SMOOTHING * weight + (1 - SMOOTHING)
        means.append(total / weight)
    return means


def steepest(rates: list[float], losses: list[float]) -> float | None:
    """Return the rate at which the loss falls fastest per decade, on its way to its lowest value.

    What comes before that way is noise: rates so small that one batch differs from the next by
    more than an update changes.
    """
    if len(rates) < FEWEST:
        return None
    values, lowest = np.array(losses), int(np.argmin(losses))
    flat = max(1, len(losses) // 10)
    plateau = float(values[:flat].mean())
    level = plateau - BEGINS * (plateau - values[lowest])
    above = np.flatnonzero(values[:lowest] >= level)
    # A loss that is lowest among the smallest rates is noise, and rises from there.
    if lowest <= flat or len(above) == 0 or not values[lowest] < plateau:
        return None
    slopes = _slopes(np.log10(rates), values)
    begin = int(above[-1])
    return rates[begin + int(np.argmin(slopes[begin : lowest + 1]))]


def propose(
    rates: list[float], suggestion: float | None, first: float, last: float, iters: int
) -> dict[str, float]:
    """Return with what to search again, where a search has not shown enough: its other arguments.

    Args:
        rates: The rates of the iterations that were made.
        suggestion: What the search suggests, if anything.
        first: The rate that it began with.
        last: The rate that it was to end with.
        iters: How many iterations it was to make.

    >>> propose([1e-9, 1e-8, 1e-7], None, 1e-9, 1e-7, 3)
    {'last': 1.0, 'iters': 100}
    >>> propose([1e-7, 1e-3, 10.0], 1e-3, 1e-7, 10.0, 3)
    {}
    """
    ended_early = len(rates) < iters
    reached = rates[-1] if rates else first
    if suggestion is not None:
        # A loss that falls up to the last rate may fall faster at one above it.
        is_last = not ended_early and suggestion >= 0.7 * last
        return {"last": _rounded(last * 100)} if is_last else {}
    again: dict[str, float] = {}
    if ended_early:  # It rose: what is good lies below.
        again = {"first": _rounded(first / 1000), "last": _rounded(reached)}
    elif last < 1:
        again = {"last": 1.0}
    # The fall may be hidden by how much one batch differs from the next.
    return {**again, "iters": max(100, 3 * iters)}


def _rounded(value: float) -> float:
    return float(f"{value:.1g}")


def _slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slope at each point, of the line that fits its surroundings best.

    The difference of two neighbours would follow a single hard batch: the fall after it is steeper
    than any that the rate brings about.
    """
    slopes = np.empty_like(y)
    for index in range(len(x)):
        near = np.abs(x - x[index]) <= NEAR
        near[max(0, index - 2) : index + 3] = True
        slopes[index] = np.polyfit(x[near], y[near], 1)[0]
    return slopes
