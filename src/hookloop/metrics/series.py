"""The values of one name in the metric store.

`Series.add` runs in every iteration. It appends to one list and compares a length, and nothing
else: windows, sums and the latest value are computed when they are read. Reading replaces tensors
by numbers in place, so that no value is copied from its device twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

Value = Tensor | float
Stamp = tuple[int, int]
"""The completed iterations and epochs at which a value was put."""

WINDOW = 100
# How many values are summed at once. A reduction costs about 100 us on a CPU, which this spreads
# over many iterations.
FOLD = 256


class Series:
    """The values of one name: the latest, a window of recent ones, the mean of the epoch.

    Memory is bounded: fewer than `FOLD` values wait to be summed, and at most `WINDOW` older ones
    are kept.

    >>> series = Series()
    >>> for value in (1.0, 2.0, 6.0):
    ...     series.add(value)
    >>> series.latest, series.mean(), series.smooth(2)
    (6.0, 3.0, 4.0)
    """

    __slots__ = (
        "_count_before",
        "_older",
        "_pending",
        "_read_counts",
        "_start_count",
        "_total",
        "_weight",
        "stamp",
        "weights",
    )

    def __init__(self) -> None:
        self._pending: list[Value] = []  # Values of this epoch, not in its sum yet.
        self._older: list[Value] = []  # The values before the pending ones.
        self.weights: list[float] | None = None  # Of the pending values; None while all are 1.
        self._total: Value = 0.0  # The weighted sum of the epoch, without the pending values.
        self._weight = 0.0  # The sum of their weights.
        self._count_before = 0  # How many values were put before the pending ones.
        self._read_counts: dict[str, int] = {}  # The count at each reader's last read.
        self._start_count = 0  # The count from which a new reader starts.
        # None if values come by `add` alone, as the loss does: then it is the current iteration.
        self.stamp: Stamp | None = None

    def add(self, value: Value, weight: float = 1.0) -> None:
        """Add a float, or a detached scalar tensor that nobody will change in place."""
        pending = self._pending
        pending.append(value)
        if weight != 1.0 or self.weights is not None:
            self._weigh(weight)
        if len(pending) >= FOLD:
            self._fold()

    def replace(self, value: Value) -> None:
        """Replace the last value, for every reader that has not read it yet."""
        # A slice: right after a fold nothing is pending, and an index would raise.
        self._pending[-1:] = [value]

    @property
    def is_empty(self) -> bool:
        """Whether there is no value at all."""
        return not (self._pending or self._older)

    @property
    def is_current(self) -> bool:
        """Whether a value was put in the current epoch."""
        return bool(self._pending or self._weight)

    @property
    def latest(self) -> Value:
        """The value that was put last."""
        return (self._pending or self._older)[-1]

    @property
    def recent(self) -> list[Value]:
        """The last values, `WINDOW` at most, also of earlier epochs."""
        return self._tail(WINDOW)

    def mean(self) -> Value:
        """Return the weighted mean of the epoch; nothing is read from a device."""
        total, count = self._sums()
        return total / count if count else float("nan")

    def sums(self) -> tuple[float, float]:
        """Read the weighted sum of the epoch's values, and the sum of their weights."""
        total, weight = self._sums()
        return float(total), weight

    def smooth(self, window: int = WINDOW) -> float:
        """Read the plain mean of the last ``window`` values, also of earlier epochs."""
        return smooth_all([self], [window])[0]

    @property
    def count(self) -> int:
        """How many values were put so far."""
        return self._count_before + len(self._pending)

    def mark_read(self, reader: str) -> int:
        """Mark all values as read by a reader; return how many of them were new to it."""
        count = self._count_before + len(self._pending)
        new = count - self._read_counts.get(reader, self._start_count)
        self._read_counts[reader] = count
        return new

    def mark_all_read(self) -> None:
        """Mark all values as read, by every reader."""
        self._read_counts, self._start_count = {}, self._count_before + len(self._pending)

    def start_epoch(self) -> None:
        """Start the sums of the epoch again; the window continues."""
        self._move_to_older()
        self._total, self._weight = 0.0, 0.0

    def bookmark(self) -> Callable[[], None]:
        """Return what takes back the values that are added from now on; nothing is copied.

        >>> series = Series()
        >>> series.add(1.0)
        >>> take_back = series.bookmark()
        >>> series.add(2.0)
        >>> take_back()
        >>> series.latest, series.count
        (1.0, 1)
        """
        # Lists are only appended to, and new ones take their place when they are summed.
        pending, weights = self._pending, self.weights
        lengths = len(pending), len(weights or ())
        older, sums = self._older, (self._total, self._weight)
        counts = dict(self._read_counts), self._start_count, self._count_before
        stamp = self.stamp

        def take_back() -> None:
            self._pending, self._older = pending[: lengths[0]], older
            self.weights = None if weights is None else weights[: lengths[1]]
            self._total, self._weight = sums
            self._read_counts, self._start_count, self._count_before = counts
            self.stamp = stamp

        return take_back

    def state_dict(self) -> dict[str, object]:
        """Return plain numbers, for a checkpoint."""
        read_all([self])
        return {
            "recent": self.recent,
            # Not summed here: the sum of a resumed epoch must have the same bits, so it must be
            # made of the same groups of `FOLD` values.
            "pending": list(self._pending),
            "weights": None if self.weights is None else list(self.weights),
            "total": self._total,
            "count": self._weight,
            "past": self._count_before,
            "marks": dict(self._read_counts),
            "start": self._start_count,
            "at": self.stamp,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        recent = cast("list[Value]", state["recent"])
        self._pending = list(cast("list[Value]", state["pending"]))
        self._older = recent[: max(0, len(recent) - len(self._pending))]
        weights = cast("list[float] | None", state["weights"])
        self.weights = None if weights is None else list(weights)
        self._total = cast("float", state["total"])
        self._weight = cast("float", state["count"])
        # The keys that follow are missing in checkpoints of earlier versions.
        self._count_before = cast("int", state.get("past", 0))
        self._read_counts = dict(cast("Mapping[str, int]", state.get("marks", {})))
        self._start_count = cast("int", state.get("start", 0))
        at = cast("Sequence[int] | None", state.get("at"))
        self.stamp = None if at is None else (at[0], at[1])

    def _weigh(self, weight: float) -> None:
        if self.weights is None:
            self.weights = [1.0] * (len(self._pending) - 1)
        self.weights.append(weight)

    def _fold(self) -> None:
        self._total, self._weight = self._sums()
        self._move_to_older()

    def _move_to_older(self) -> None:
        self._older, self._count_before = self.recent, self._count_before + len(self._pending)
        self._pending, self.weights = [], None

    def _sums(self) -> tuple[Value, float]:
        if not self._pending:
            return self._total, self._weight
        count = sum(self.weights) if self.weights else float(len(self._pending))
        return self._total + _sum(self._pending, self.weights), self._weight + count

    def _tail(self, window: int) -> list[Value]:
        """Copy the last ``window`` values, or all if there are fewer."""
        missing = window - len(self._pending)
        return self._older[-missing:] + self._pending if missing > 0 else self._pending[-window:]

    def _store_numbers(self, numbers: list[Value]) -> None:
        """Replace the last values by the numbers that were read from them."""
        split = max(0, len(numbers) - len(self._pending))
        if split < len(numbers):
            self._pending[split - len(numbers) :] = numbers[split:]
        if split:
            self._older[-split:] = numbers[:split]


def smooth_all(series: Sequence[Series], windows: Sequence[int]) -> list[float]:
    """Read the mean of the last values of several series, in one copy; each has its own window."""
    return [sum(numbers) / len(numbers) for numbers in read_last(series, windows)]


def read_last(series: Sequence[Series], windows: Sequence[int]) -> list[list[float]]:
    """Read the last values of several series, in one copy; each has its own window."""
    tails = [one._tail(window) for one, window in zip(series, windows, strict=True)]
    read = read_values(tails)
    for one, tail, numbers in zip(series, tails, read, strict=True):
        if numbers is not tail:  # It held tensors, which need not be read again.
            one._store_numbers(cast("list[Value]", numbers))
    return read


def read_all(series: Sequence[Series]) -> None:
    """Turn all values and sums of several series into numbers, in one copy."""
    read = read_values([[one._total, *one._older, *one._pending] for one in series])
    for one, (total, *numbers) in zip(series, read, strict=True):
        one._total = total
        one._store_numbers(cast("list[Value]", numbers))


def read_values(lists: list[list[Value]]) -> list[list[float]]:
    """Turn lists of values into numbers, in one copy; a list of numbers is returned as it is."""
    # `map(type, ...)` runs in C. torch makes isinstance(..., Tensor) slow, and a log line looks at
    # hundreds of values.
    unread = [set(map(type, values)) - _NUMBER for values in lists]
    if not any(unread):
        return cast("list[list[float]]", lists)
    tensors = [
        value
        for values, unread_types in zip(lists, unread, strict=True)
        if unread_types
        for value in values
        if type(value) is not float
    ]
    numbers = iter(_stack(tensors).tolist())
    return [
        [value if type(value) is float else next(numbers) for value in values]
        if unread_types
        else cast("list[float]", values)
        for values, unread_types in zip(lists, unread, strict=True)
    ]


_NUMBER = {float}


def _sum(values: list[Value], weights: list[float] | None) -> Value:
    if set(map(type, values)) == _NUMBER:
        numbers = cast("list[float]", values)
        return (
            sum(numbers)
            if weights is None
            else sum(v * w for v, w in zip(numbers, weights, strict=True))
        )
    stacked = _stack_as_double(values)
    if weights is None:
        return stacked.sum()
    return stacked.dot(_copy_without_waiting(weights, stacked))


def _stack_as_double(values: Sequence[Value]) -> Tensor:
    """Stack values in double precision, on the device of the first tensor among them."""
    first = next(index for index, value in enumerate(values) if type(value) is not float)
    rest = _stack(values[first:])
    rest = rest.to(torch.float32 if rest.device.type == "mps" else torch.float64)
    if not first:
        return rest
    # The usual mix: numbers that were read already, then tensors that were added since.
    return torch.cat([_copy_without_waiting(cast("Sequence[float]", values[:first]), rest), rest])


def _stack(values: Sequence[Value]) -> Tensor:
    """Stack values in their own precision, on the device of the first."""
    # Nearly always all are tensors of one device. Checking that takes as long as stacking them.
    try:
        return torch.stack(cast("list[Tensor]", values))
    except (
        TypeError,
        RuntimeError,
    ):  # There are numbers among them, or tensors of several devices.
        device = torch.as_tensor(values[0]).device
        wide = torch.float32 if device.type == "mps" else torch.float64
        return torch.stack([torch.as_tensor(value, dtype=wide, device=device) for value in values])


def _copy_without_waiting(numbers: Sequence[float], like: Tensor) -> Tensor:
    """Copy numbers to a tensor's device without waiting for the work that is queued there."""
    # CUDA copies asynchronously from pinned memory only.
    pinned = like.device.type == "cuda"
    source = torch.tensor(numbers, dtype=like.dtype, pin_memory=pinned)
    return source.to(like.device, non_blocking=True)
