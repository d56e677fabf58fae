"""The metric store: named values waiting to be read.

A tensor stays on its device until its number is needed; reading several names costs one copy. What
is kept is bounded: a window of recent values and the sums of the current epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from torch import Tensor

from hookloop.errors import MetricError, nearest
from hookloop.metrics.series import WINDOW, Series, Value, read_all, read_values, smooth_all


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
        return [name for name, series in self._series.items() if not series.is_empty]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        series = self._series.get(name)
        return series is not None and not series.is_empty

    def latest(self, name: str) -> float:
        """Read the newest value of a name."""
        return float(self._known(name).latest)

    def mean(self, name: str) -> float:
        """Read the mean of a name over the current epoch."""
        series = self._known(name)
        read_all([series])
        return float(series.mean())

    def smooth(self, names: Iterable[str], window: int = WINDOW) -> dict[str, float]:
        """Read the means of several names over their last ``window`` values, in one copy."""
        chosen = list(names)
        means = smooth_all([self._known(name) for name in chosen], [window] * len(chosen))
        return dict(zip(chosen, means, strict=True))

    def stream(self, name: str) -> dict[str, float]:
        """Read the epoch means of everything that was put under ``name/``, in one copy."""
        chosen = self._current(name)
        read_all([self._series[one] for one in chosen])
        return {one.removeprefix(f"{name}/"): float(self._series[one].mean()) for one in chosen}

    def recent(self, name: str, window: int = WINDOW) -> dict[str, float]:
        """Read the means of the last ``window`` values instead, by full name, in one copy.

        What was put in earlier epochs only, such as a statistic of those, is left out.
        """
        return self.smooth(self._current(name), window)

    def since(self, name: str, reader: str) -> dict[str, float]:
        """Read the means of what came since the reader did this last, by full name, in one copy.

        They are those of `WINDOW` values at most; where nothing came, the newest value stays.
        """
        chosen = self._current(name)
        series = [self._series[one] for one in chosen]
        windows = [max(1, min(one.count_new(reader), WINDOW)) for one in series]
        return dict(zip(chosen, smooth_all(series, windows), strict=True))

    def all_latest(self) -> dict[str, float]:
        """Read the newest value of every name, in one copy."""
        names = self.names()
        (values,) = read_values([[self._series[name].latest for name in names]])
        return dict(zip(names, values, strict=True))

    def start_epoch(self, stream: str) -> None:
        """Begin the epoch means of a stream anew."""
        for name, series in self._series.items():
            if name.startswith(f"{stream}/"):
                series.start_epoch()

    def state_dict(self) -> dict[str, object]:
        """Return every series as plain numbers; the size does not grow with the run."""
        held = {name: series for name, series in self._series.items() if not series.is_empty}
        read_all(list(held.values()))
        return {name: series.state_dict() for name, series in held.items()}

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
