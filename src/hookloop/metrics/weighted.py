"""A mean over parts that do not count alike; nothing is read from the device for it."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.metrics.series import Value

Weight = Tensor | float
"""What a batch counts for: its samples, or what a step counted, such as tokens or valid pixels."""


class WeightedMean:
    """A mean of values, each with a weight; a value of weight 0 is left out, even if it is NaN.

    >>> mean = WeightedMean()
    >>> mean.add(1.0, 8)
    >>> mean.add(4.0, 4)
    >>> mean.mean()
    2.0
    """

    def __init__(self) -> None:
        self._sum: Value = 0.0
        self._weight: Weight = 0.0
        self._dtype: torch.dtype | None = None

    def add(self, value: Value, weight: Weight) -> None:
        """Take a value."""
        if isinstance(value, Tensor):
            self._dtype = value.dtype
            value = _wide(value.detach())
        if isinstance(weight, Tensor):
            weight = _wide(weight)
            value = torch.where(weight == 0, 0.0, value)
        if isinstance(weight, Tensor) or weight:
            self._sum = self._sum + value * weight
            self._weight = self._weight + weight

    def mean(self) -> Value:
        """Return the mean, in the precision of the values; 0 if nothing had a weight."""
        weight = self._weight
        if isinstance(weight, Tensor):
            weight = torch.where(weight == 0, 1.0, weight)
        mean = self._sum / (weight if isinstance(weight, Tensor) else weight or 1.0)
        return mean.to(self._dtype) if isinstance(mean, Tensor) and self._dtype else mean


def _wide(value: Tensor) -> Tensor:
    return value.to(torch.float32 if value.device.type == "mps" else torch.float64)
