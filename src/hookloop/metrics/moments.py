"""The exact mean and variance of numbers that arrive in parts."""

from __future__ import annotations

import torch
from torch import Tensor


class Moments:
    """Mean and variance per channel, combined from parts without loss of precision.

    >>> moments = Moments()
    >>> for part in torch.arange(6.0).reshape(3, 2, 1):
    ...     moments.add(part)
    >>> moments.mean.item(), moments.variance().item() == torch.arange(6.0).double().var().item()
    (2.5, True)
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Tensor = torch.zeros(())
        self._squares: Tensor = torch.zeros(())

    def add(self, values: Tensor) -> None:
        """Add a part; its second dimension is the channels."""
        # MPS has no double precision.
        dtype = torch.float32 if values.device.type == "mps" else torch.float64
        flat = values.detach().to(dtype).transpose(0, 1).flatten(1)
        count, mean = flat.shape[1], flat.mean(1)
        self.join((count, mean, (flat - mean[:, None]).square().sum(1)))

    def parts(self) -> tuple[int, Tensor, Tensor]:
        """Return what another process can `join`: count, mean and squared distances from it."""
        return self.count, self.mean, self._squares

    def join(self, parts: tuple[int, Tensor, Tensor]) -> None:
        """Add numbers of which only these are known."""
        count, mean, squares = parts
        if not self.count:
            self.count, self.mean, self._squares = count, mean, squares
            return
        # Chan et al.: subtracting squares of large means would lose most digits.
        total, distance = self.count + count, mean - self.mean
        self._squares = self._squares + squares + distance.square() * (self.count * count / total)
        self.mean = self.mean + distance * (count / total)
        self.count = total

    def variance(self) -> Tensor:
        """Return the unbiased variance; 0 for a single number."""
        return self._squares / max(self.count - 1, 1)
