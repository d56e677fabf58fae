"""A check that numbers are finite, which reads many of them in one copy."""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor

Label = TypeVar("Label")


class FiniteCheck(Generic[Label]):
    """Labelled scalars that wait on their device until they are checked together.

    >>> seen = FiniteCheck[str]()
    >>> for step, number in enumerate((1.0, float("inf"), float("nan"))):
    ...     seen.add(f"step {step}", torch.tensor(number))
    >>> seen.take_first_nonfinite(), seen.take_first_nonfinite()
    (('step 1', inf), None)
    """

    def __init__(self) -> None:
        self._labels: list[Label] = []
        self._values: list[Tensor] = []

    def add(self, label: Label, value: Tensor) -> None:
        """Add a detached scalar; nothing is read from its device."""
        self._labels.append(label)
        self._values.append(value)

    def take_first_nonfinite(self) -> tuple[Label, float] | None:
        """Read all scalars and forget them; return the first that is NaN or infinite, if any."""
        # Forgotten in any case, so that memory does not grow and nothing is reported twice.
        labels, values = self._labels, self._values
        self._labels, self._values = [], []
        if not values:
            return None
        numbers = torch.stack([value.to(values[0].device) for value in values])
        nonfinite = numbers.isfinite().logical_not()
        # One flag is read in the usual case; the labels are searched only when there is a problem.
        if not nonfinite.any():
            return None
        first = nonfinite.tolist().index(True)
        return labels[first], float(numbers[first])
