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
