"""`Waiting`: numbers that stay on their device until somebody asks for them."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 1000  # How many may wait.


class Waiting:
    """Scalars of one training, read many at a time.

    >>> waiting = Waiting()
    >>> waiting.add(torch.tensor(2.0))
    False
    >>> waiting.read()
    [2.0]
    """

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []

    def add(self, tensor: Tensor) -> bool:
        """Take a scalar; return whether it is time to read."""
        self._tensors.append(tensor.detach())
        return len(self._tensors) >= CHUNK

    def read(self) -> list[float]:
        """Read all that wait, in one copy, and forget them."""
        tensors, self._tensors = self._tensors, []
        if not tensors:
            return []
        if any(one.ndim for one in tensors):
            tensors = [one.float().mean() for one in tensors]
        numbers: list[float] = torch.stack(tensors).tolist()
        return numbers
