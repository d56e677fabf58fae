"""The values of one name in the metric store; written in every iteration, so kept cheap.

`Series.add` is on the hot path. It appends to one list and compares a length, and nothing else:
what the values mean (a window, a sum, a latest one) is found out when somebody asks. Reading turns
tensors into numbers where they lie, so that no value is copied from its device twice, and a value
that was read costs nothing when it is summed later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

Value = Tensor | float
Moment = tuple[int, int]
"""Completed iterations and epochs."""

WINDOW = 100
FOLD = 256  # Values per reduction kernel: its cost, about 100 us on a CPU, is spread over as many.


class Series:
    """The values of one name: the latest, a window of recent ones, the mean of the epoch.

    What is kept is bounded: the values since the last sum was made, of which there are fewer than
    `FOLD`, and before these a window of `WINDOW`.

    >>> series = Series()
    >>> for value in (1.0, 2.0, 6.0):
    ...     series.add(value)
    >>> series.latest, series.mean(), series.smooth(2)
    (6.0, 3.0, 4.0)
    """

    __slots__ = (
        "_count",
        "_fresh",
        "_marks",
        "_older",
        "_past",
        "_start",
        "_total",
        "at",
        "weights",
    )

    def __init__(self) -> None:
        self._fresh: list[Value] = []  # Of this epoch, not yet in its sum.
        self._older: list[Value] = []  # Before these.
        self.weights: list[float] | None = None  # Of the fresh; None while all are 1.
        self._total: Value = 0.0
        self._count = 0.0
        self._past = 0  # How many values came before the fresh.
        self._marks: dict[str, int] = {}  # How many had come when a reader read last.
        self._start = 0  # How many had come before the first that a new reader gets.
        self.at: Moment | None = None  # When the last was put; None for the current iteration.

    def add(self, value: Value, weight: float = 1.0) -> None:
        """Take a float, or a detached scalar tensor that nobody will change in place."""
        fresh = self._fresh
        fresh.append(value)
        if weight != 1.0 or self.weights is not None:
            self._weigh(weight)
        if len(fresh) >= FOLD:
            self._fold()

    def replace(self, value: Value) -> None:
        """Put a value in the place of the last one, for every reader that has not read it."""
        self._fresh[-1:] = [value]

    @property
    def is_empty(self) -> bool:
        """Whether no value was ever put."""
        return not (self._fresh or self._older)

    @property
    def is_current(self) -> bool:
        """Whether a value was put since the epoch began."""
        return bool(self._fresh or self._count)

    @property
    def latest(self) -> Value:
        """The value put last."""
        return (self._fresh or self._older)[-1]

    @property
    def recent(self) -> list[Value]:
        """The last values, at most `WINDOW`, across epochs."""
        return self._tail(WINDOW)

    def mean(self) -> Value:
        """The weighted mean of the epoch; nothing is read for it."""
        total, count = self._sums()
        return total / count if count else float("nan")

    def smooth(self, window: int = WINDOW) -> float:
        """Read the plain mean of the last ``window`` values, across epochs."""
        return smooth_all([self], [window])[0]

    @property
    def count(self) -> int:
        """How many values were ever put."""
        return self._past + len(self._fresh)

    def count_new(self, reader: str) -> int:
        """Count the values that a reader has not counted before."""
        came = self._past + len(self._fresh)
        new = came - self._marks.get(reader, self._start)
        self._marks[reader] = came
        return new

    def settle(self) -> None:
        """Let no reader get what came so far."""
        self._marks, self._start = {}, self._past + len(self._fresh)

    def start_epoch(self) -> None:
        """Forget the epoch's sums; the window goes on."""
        self._put_away()
        self._total, self._count = 0.0, 0.0

    def state_dict(self) -> dict[str, object]:
        """Return plain numbers; values not yet summed stay apart, so that sums keep their bits."""
        read_all([self])
        return {
            "recent": self.recent,
            "pending": list(self._fresh),
            "weights": None if self.weights is None else list(self.weights),
            "total": self._total,
            "count": self._count,
            "past": self._past,
            "marks": dict(self._marks),
            "start": self._start,
            "at": self.at,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        recent = cast("list[Value]", state["recent"])
        self._fresh = list(cast("list[Value]", state["pending"]))
        self._older = recent[: max(0, len(recent) - len(self._fresh))]
        weights = cast("list[float] | None", state["weights"])
        self.weights = None if weights is None else list(weights)
        self._total = cast("float", state["total"])
        self._count = cast("float", state["count"])
        self._past = cast("int", state.get("past", 0))
        self._marks = dict(cast("Mapping[str, int]", state.get("marks", {})))
        self._start = cast("int", state.get("start", 0))
        at = cast("Sequence[int] | None", state.get("at"))
        self.at = None if at is None else (at[0], at[1])

    def _weigh(self, weight: float) -> None:
        if self.weights is None:
            self.weights = [1.0] * (len(self._fresh) - 1)
        self.weights.append(weight)

    def _fold(self) -> None:
        self._total, self._count = self._sums()
        self._put_away()

    def _put_away(self) -> None:
        self._older, self._past = self.recent, self._past + len(self._fresh)
        self._fresh, self.weights = [], None

    def _sums(self) -> tuple[Value, float]:
        if not self._fresh:
            return self._total, self._count
        count = sum(self.weights) if self.weights else float(len(self._fresh))
        return self._total + _sum(self._fresh, self.weights), self._count + count

    def _tail(self, window: int) -> list[Value]:
        """Copy the last values, as many as there are."""
        missing = window - len(self._fresh)
        return self._older[-missing:] + self._fresh if missing > 0 else self._fresh[-window:]

    def _keep(self, numbers: list[Value]) -> None:
        """Put what was read in the place of the last values."""
        border = max(0, len(numbers) - len(self._fresh))
        if border < len(numbers):
            self._fresh[border - len(numbers) :] = numbers[border:]
        if border:
            self._older[-border:] = numbers[:border]


def smooth_all(series: Sequence[Series], windows: Sequence[int]) -> list[float]:
    """Read the means over the last values of several series, so many of each, in one copy."""
    return [sum(numbers) / len(numbers) for numbers in read_last(series, windows)]


def read_last(series: Sequence[Series], windows: Sequence[int]) -> list[list[float]]:
    """Read the last values of several series, so many of each, in one copy."""
    tails = [one._tail(window) for one, window in zip(series, windows, strict=True)]
    read = read_values(tails)
    for one, before, numbers in zip(series, tails, read, strict=True):
        if numbers is not before:
            one._keep(cast("list[Value]", numbers))
    return read


def read_all(series: Sequence[Series]) -> None:
    """Turn everything that several series hold into numbers, in one copy."""
    read = read_values([[one._total, *one._older, *one._fresh] for one in series])
    for one, (total, *numbers) in zip(series, read, strict=True):
        one._total = total
        one._keep(cast("list[Value]", numbers))


def read_values(lists: list[list[Value]]) -> list[list[float]]:
    """Turn lists of values into numbers with at most one copy; those that are numbers stay."""
    # Types are compared within C: torch makes isinstance(..., Tensor) slow, and a pass over
    # hundreds of values is what a log line costs.
    unread = [set(map(type, values)) - _NUMBER for values in lists]
    if not any(unread):
        return cast("list[list[float]]", lists)
    tensors = [
        value
        for values, others in zip(lists, unread, strict=True)
        if others
        for value in values
        if type(value) is not float
    ]
    numbers = iter(_side_by_side(tensors).tolist())
    return [
        [value if type(value) is float else next(numbers) for value in values]
        if others
        else cast("list[float]", values)
        for values, others in zip(lists, unread, strict=True)
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
    stacked = _stack(values)
    if weights is None:
        return stacked.sum()
    return stacked.dot(_ahead(weights, stacked))


def _stack(values: Sequence[Value]) -> Tensor:
    """Put values side by side in double precision, on the device of the first tensor among them."""
    border = next(place for place, value in enumerate(values) if type(value) is not float)
    rest = _side_by_side(values[border:])
    rest = rest.to(torch.float32 if rest.device.type == "mps" else torch.float64)
    if not border:
        return rest
    # Most often: what was read already, and what came since.
    return torch.cat([_ahead(cast("Sequence[float]", values[:border]), rest), rest])


def _side_by_side(values: Sequence[Value]) -> Tensor:
    """Put values side by side in their own precision; the first decides on the device."""
    try:  # Mostly all are alike; to make sure of it first would take as long as to stack them.
        return torch.stack(cast("list[Tensor]", values))
    except (TypeError, RuntimeError):  # Numbers between them, or tensors of several devices.
        device = torch.as_tensor(values[0]).device
        wide = torch.float32 if device.type == "mps" else torch.float64
        return torch.stack([torch.as_tensor(one, dtype=wide, device=device) for one in values])


def _ahead(numbers: Sequence[float], like: Tensor) -> Tensor:
    """Bring numbers to a tensor's device without waiting for what that has to do before."""
    pinned = like.device.type == "cuda"
    held = torch.tensor(numbers, dtype=like.dtype, pin_memory=pinned)
    return held.to(like.device, non_blocking=True)
