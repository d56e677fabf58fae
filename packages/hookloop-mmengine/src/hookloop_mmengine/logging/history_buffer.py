"""``mmengine.logging.HistoryBuffer``: the history of one scalar, with a count for each value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor

Statistic = Callable[..., object]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class HistoryBuffer:
    """A history of numbers; tensors are read only when a statistic needs them.

    Args:
        log_history: The values so far.
        count_history: The weight of each value, for example the batch size.
        max_length: How many of the newest values are kept.

    >>> buffer = HistoryBuffer([1, 2, 3], [1, 1, 2])
    >>> buffer.mean(), buffer.current(), buffer.max(2)
    (1.5, 3.0, 3.0)
    """

    _registered: ClassVar[dict[str, Statistic]] = {}

    def __init__(
        self,
        log_history: Sequence[float] = (),
        count_history: Sequence[float] = (),
        max_length: int = 1_000_000,
    ) -> None:
        if len(log_history) != len(count_history):
            raise ValueError("The lengths of log_history and count_history should be equal.")
        self.max_length = max_length
        # A list and not MMEngine's array: numpy would read each tensor at once.
        self._values: list[Tensor | float] = [*log_history[-max_length:]]
        self._counts: list[float] = list(count_history)[-max_length:]

    @property
    def data(self) -> tuple[Numbers, Numbers]:
        """The values and the counts, as arrays."""
        return np.array(self._read(len(self._values))), np.array(self._counts)

    def update(self, log_val: Tensor | float, count: float = 1) -> None:
        """Add a value."""
        self._values.append(log_val)
        self._counts.append(count)
        # One at most, because values come one at a time.
        if len(self._values) > self.max_length:
            del self._values[0], self._counts[0]

    @classmethod
    def register_statistics(cls, method: Statistic) -> Statistic:
        """Register a function of a buffer, so that `statistics` finds it by its name."""
        cls._registered[method.__name__] = method
        return method

    def statistics(self, method_name: str, *args: object, **kwargs: object) -> object:
        """Compute the statistic of a name."""
        own = {"mean": self.mean, "max": self.max, "min": self.min, "current": self.current}
        if method_name in own:
            return cast("Statistic", own[method_name])(*args, **kwargs)
        if method_name not in self._registered:
            names = ", ".join([*own, *self._registered])
            raise KeyError(f"{method_name} has not been registered; there are: {names}.")
        return self._registered[method_name](self, *args, **kwargs)

    def mean(self, window_size: int | None = None) -> float:
        """Return the sum of the last values divided by the sum of their counts."""
        # Not a weighted mean: MMEngine does not multiply the values by their counts either.
        values = self._window(window_size)
        return sum(values) / sum(self._counts[-len(values) :])

    def max(self, window_size: int | None = None) -> float:
        """Return the greatest of the last values."""
        return max(self._window(window_size))

    def min(self, window_size: int | None = None) -> float:
        """Return the least of the last values."""
        return min(self._window(window_size))

    def current(self) -> float:
        """Return the last value."""
        if not self._values:
            raise ValueError("HistoryBuffer._log_history is an empty array.")
        return self._read(1)[0]

    def state_dict(self) -> dict[str, object]:
        """Return the history as tensors, which a checkpoint can hold."""
        values = self._read(len(self._values))
        return {
            # Double precision, so that the numbers come back with the same bits.
            "values": torch.tensor(values, dtype=torch.float64),
            "counts": torch.tensor(self._counts, dtype=torch.float64),
            "max_length": self.max_length,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> HistoryBuffer:
        """Return the buffer that `state_dict` described."""
        values, counts = cast("Tensor", state["values"]), cast("Tensor", state["counts"])
        return cls(values.tolist(), counts.tolist(), cast("int", state["max_length"]))

    def _window(self, window_size: int | None) -> list[float]:
        if window_size is not None and not isinstance(window_size, int):
            raise TypeError(f"The type of window size should be int, but got {type(window_size)}")
        return self._read(min(window_size or len(self._values), len(self._values)))

    def _read(self, count: int) -> list[float]:
        """Turn the last values into numbers."""
        # A slice that starts at -0 would be the whole list.
        if not count:
            return []
        last = self._values[-count:]
        unread = [index for index, value in enumerate(last) if isinstance(value, Tensor)]
        if unread:
            # One copy for all of them: each copy from a GPU waits for the work queued on it.
            tensors = [cast("Tensor", last[index]).reshape(()).double() for index in unread]
            for index, number in zip(unread, torch.stack(tensors).tolist(), strict=True):
                last[index] = number
            # Kept, so that each tensor is read once.
            self._values[-count:] = last
        return [float(value) for value in last]
