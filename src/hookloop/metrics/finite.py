"""Numbers that must be finite: kept on their device, and read together."""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor

Label = TypeVar("Label")


class Finite(Generic[Label]):
    """Scalars under labels, until somebody asks which of them was the first to be NaN or infinite.

    >>> seen = Finite[str]()
    >>> for step, number in enumerate((1.0, float("inf"), float("nan"))):
    ...     seen.add(f"step {step}", torch.tensor(number))
    >>> seen.first_fault(), seen.first_fault()
    (('step 1', inf), None)
    """

    def __init__(self) -> None:
        self._labels: list[Label] = []
        self._values: list[Tensor] = []

    def add(self, label: Label, value: Tensor) -> None:
        """Keep a detached scalar; nothing is read."""
        self._labels.append(label)
        self._values.append(value)

    def first_fault(self) -> tuple[Label, float] | None:
        """Read what was kept, in one copy, and begin anew."""
        labels, values = self._labels, self._values
        self._labels, self._values = [], []
        if not values:
            return None
        numbers = torch.stack([value.to(values[0].device) for value in values])
        faults = numbers.isfinite().logical_not()
        if not faults.any():
            return None
        first = faults.tolist().index(True)
        return labels[first], float(numbers[first])
