"""The metric store: named values waiting to be read.

A tensor stays on its device until its number is needed; reading several names costs one copy. What
is kept is bounded: a window of recent values and the sums of the current epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import cast

import torch
from torch import Tensor

from hookloop.errors import MetricError, nearest

Value = Tensor | float
WINDOW = 100
FOLD = 256  # Values per reduction kernel: its cost, about 150 us on a CPU, is spread over as many.


class Series:
    """The values of one name: the latest, a window of recent ones, the mean of the epoch.

    >>> series = Series()
    >>> for value in (1.0, 2.0, 6.0):
    ...     series.add(value)
    >>> series.latest, series.mean(), series.smooth(2)
    (6.0, 3.0, 4.0)
    """

    __slots__ = ("_count", "_pending", "_total", "recent", "weights")

    def __init__(self) -> None:
        self.recent: deque[Value] = deque(maxlen=WINDOW)
        self.weights: list[float] | None = None
        self._pending: list[Value] = []
        self._total: Value = 0.0
        self._count = 0.0

    def add(self, value: Value, weight: float = 1.0) -> None:
        """Take a value that nobody will change in place; a tensor must be detached and scalar."""
        self.recent.append(value)
        self._pending.append(value)
        if weight != 1.0 or self.weights is not None:
            if self.weights is None:
                self.weights = [1.0] * (len(self._pending) - 1)
            self.weights.append(weight)
        if len(self._pending) >= FOLD:
            self._total, self._count = self._sums()
            self._pending, self.weights = [], None

    @property
    def latest(self) -> Value:
        """The value put last."""
        return self.recent[-1]

    @property
    def is_current(self) -> bool:
        """Whether a value was put since the epoch began."""
        return bool(self._pending or self._count)

    def mean(self) -> Value:
        """The weighted mean of the epoch."""
        total, count = self._sums()
        return total / count if count else float("nan")

    def smooth(self, window: int = WINDOW) -> Value:
        """The plain mean of the last ``window`` values, across epochs."""
        values = list(self.recent)[-window:]
        return _sum(values, None) / len(values)

    def start_epoch(self) -> None:
        """Forget the epoch's sums; the window goes on."""
        self._pending, self.weights = [], None
        self._total, self._count = 0.0, 0.0

    def _sums(self) -> tuple[Value, float]:
        if not self._pending:
            return self._total, self._count
        count = sum(self.weights) if self.weights else float(len(self._pending))
        return self._total + _sum(self._pending, self.weights), self._count + count

    def state_dict(self) -> dict[str, object]:
        """Return plain numbers; values not yet folded stay apart, so that sums keep their bits."""
        return {
            "recent": _numbers(self.recent),
            "pending": _numbers(self._pending),
            "weights": None if self.weights is None else list(self.weights),
            "total": float(self._total),
            "count": self._count,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        self.recent = deque(cast("list[float]", state["recent"]), maxlen=WINDOW)
        self._pending = list(cast("list[float]", state["pending"]))
        weights = cast("list[float] | None", state["weights"])
        self.weights = None if weights is None else list(weights)
        self._total = cast("float", state["total"])
        self._count = cast("float", state["count"])


class MetricStore:
    """Named series, ``train/loss`` or ``val/accuracy``: the part before the slash is the stream.

    >>> store = MetricStore()
    >>> store.put("train/loss", 0.5)
    >>> store.put("train/loss", 0.3)
    >>> store.latest("train/loss"), store.stream("train")
    (0.3, {'loss': 0.4})
    """

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}

    def series(self, name: str) -> Series:
        """Return the series of a name, made when it is new."""
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = Series()
        return found

    def put(self, name: str, value: Value | int, weight: float = 1.0) -> None:
        """Record a number; a tensor is copied on its device and not read."""
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise MetricError(
                    f"'{name}' is a tensor of shape {tuple(value.shape)}: put a scalar."
                )
            # A copy, since the caller may go on to change the tensor in place.
            self.series(name).add(value.detach().clone().reshape(()), weight)
        else:
            self.series(name).add(float(value), weight)

    def names(self) -> list[str]:
        """List the names that have a value."""
        return [name for name, series in self._series.items() if series.recent]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._series and bool(self._series[name].recent)

    def latest(self, name: str) -> float:
        """Read the newest value of a name."""
        return float(self._known(name).latest)

    def mean(self, name: str) -> float:
        """Read the mean of a name over the current epoch."""
        return float(self._known(name).mean())

    def smooth(self, names: Iterable[str], window: int = WINDOW) -> dict[str, float]:
        """Read the means of several names over their last ``window`` values, in one copy."""
        chosen = list(names)
        return dict(
            zip(chosen, _read([self._known(n).smooth(window) for n in chosen]), strict=True)
        )

    def stream(self, name: str) -> dict[str, float]:
        """Read the epoch means of everything that was put under ``name/``, in one copy."""
        chosen = self._current(name)
        values = _read([self._series[n].mean() for n in chosen])
        return {n.removeprefix(f"{name}/"): v for n, v in zip(chosen, values, strict=True)}

    def recent(self, name: str, window: int = WINDOW) -> dict[str, float]:
        """Read the means of the last ``window`` values instead, by full name, in one copy.

        What was put in earlier epochs only, such as a statistic of those, is left out.
        """
        return self.smooth(self._current(name), window)

    def all_latest(self) -> dict[str, float]:
        """Read the newest value of every name, in one copy."""
        names = self.names()
        return dict(zip(names, _read([self._series[n].latest for n in names]), strict=True))

    def start_epoch(self, stream: str) -> None:
        """Begin the epoch means of a stream anew."""
        for name, series in self._series.items():
            if name.startswith(f"{stream}/"):
                series.start_epoch()

    def state_dict(self) -> dict[str, object]:
        """Return every series as plain numbers; the size does not grow with the run."""
        return {name: series.state_dict() for name, series in self._series.items() if series.recent}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned; series handed out before stay valid."""
        for name, series in state.items():
            self.series(name).load_state_dict(cast("Mapping[str, object]", series))

    def _current(self, stream: str) -> list[str]:
        prefix = f"{stream}/"
        return [n for n, one in self._series.items() if n.startswith(prefix) and one.is_current]

    def _known(self, name: str) -> Series:
        if name not in self:
            listed = ", ".join(sorted(self.names())) or "none yet"
            raise MetricError(
                f"No metric '{name}' has been recorded.{nearest(name, self.names())} "
                f"There are: {listed}."
            )
        return self._series[name]


def _sum(values: list[Value], weights: list[float] | None) -> Value:
    if not any(isinstance(value, Tensor) for value in values):
        numbers = cast("list[float]", values)
        return (
            sum(numbers)
            if weights is None
            else sum(v * w for v, w in zip(numbers, weights, strict=True))
        )
    stacked = _stack(values)
    if weights is None:
        return stacked.sum()
    return stacked.dot(torch.tensor(weights, dtype=stacked.dtype, device=stacked.device))


def _stack(values: Iterable[Value]) -> Tensor:
    """Put values side by side in double precision, on the device of the first tensor among them."""
    listed = list(values)
    like = next(value for value in listed if isinstance(value, Tensor))
    dtype = torch.float32 if like.device.type == "mps" else torch.float64
    same = all(
        isinstance(v, Tensor) and v.dtype == like.dtype and v.device == like.device for v in listed
    )
    if same:
        return torch.stack(cast("list[Tensor]", listed)).to(dtype)
    return torch.stack([torch.as_tensor(v, dtype=dtype, device=like.device) for v in listed])


def _numbers(values: Iterable[Value]) -> list[float]:
    return _read(list(values))


def _read(values: list[Value]) -> list[float]:
    """Turn values into numbers with at most one copy from the device."""
    if not any(isinstance(value, Tensor) for value in values):
        return [float(value) for value in values]
    numbers: list[float] = _stack(values).tolist()
    return numbers
