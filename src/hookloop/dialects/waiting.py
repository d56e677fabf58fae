"""`Waiting`: numbers that stay on their device until a hook reads them."""

from __future__ import annotations

from torch import Tensor

from hookloop.metrics.series import Value, read_values

# A limit, so that a run that never reads them does not keep a tensor for every iteration.
CHUNK = 1000


class Waiting:
    """Numbers of one training, read many at a time.

    Reading a tensor makes the CPU wait for the GPU, so it is not done per iteration.

    >>> waiting = Waiting()
    >>> waiting.add(2.0)
    False
    >>> waiting.read()
    [2.0]
    """

    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, value: Value) -> bool:
        """Add a number or a scalar tensor; return whether it is time to read."""
        values = self._values
        # Detached, or each loss would keep the graph of its iteration alive.
        values.append(value.detach() if isinstance(value, Tensor) else value)
        return len(values) >= CHUNK

    def read(self) -> list[float]:
        """Return all waiting numbers, read in one copy, and forget them."""
        values, self._values = self._values, []
        (numbers,) = read_values([values])
        return numbers
