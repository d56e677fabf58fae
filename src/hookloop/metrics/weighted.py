"""A weighted mean whose values and weights may stay on a device."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.metrics.series import Value

Weight = Tensor | float
"""The weight of a batch: its samples, or what a step counted, such as tokens or valid pixels."""


class WeightedMean:
    """A weighted mean; a value of weight 0 is left out, even if it is NaN.

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
        """Add a value with its weight."""
        if isinstance(value, Tensor):
            if value.is_floating_point():  # The mean of whole numbers is none.
                self._dtype = value.dtype
            value = _wide(value.detach())
        if isinstance(weight, Tensor):
            weight = _wide(weight)
            # On the device, since `if weight` would wait for it; and NaN times 0 would be NaN.
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

    def sums(self) -> tuple[float, float]:
        """Read the weighted sum of the values, and the sum of the weights."""
        return float(self._sum), float(self._weight)


def _wide(value: Tensor) -> Tensor:
    # A sum in half precision would soon overflow. MPS has no double precision.
    return value.to(torch.float32 if value.device.type == "mps" else torch.float64)


def zero_if_uncounted(loss: Tensor, weight: Weight) -> Tensor:
    """Return a loss, or 0 with the graph of the loss if it counts for nothing."""
    if isinstance(weight, Tensor):
        return torch.where(weight == 0, 0.0, loss)
    return loss if weight else torch.nan_to_num(loss) * 0.0
