"""`Waiting`: numbers that stay on their device until somebody asks for them."""

from __future__ import annotations

from torch import Tensor

from hookloop.metrics.series import Value, read_values

CHUNK = 1000  # How many may wait.


class Waiting:
    """Numbers of one training, read many at a time.

    >>> waiting = Waiting()
    >>> waiting.add(2.0)
    False
    >>> waiting.read()
    [2.0]
    """

    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, value: Value) -> bool:
        """Take a number or a scalar tensor; return whether it is time to read."""
        values = self._values
        values.append(value.detach() if isinstance(value, Tensor) else value)
        return len(values) >= CHUNK

    def read(self) -> list[float]:
        """Read all that wait, in one copy, and forget them."""
        values, self._values = self._values, []
        (numbers,) = read_values([values])
        return numbers
