"""The metric store: named values waiting to be read.

A tensor stays on its device until its number is needed; reading several names costs one copy. What
is kept is bounded: a window of recent values and the sums of the current epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from torch import Tensor

from hookloop.errors import MetricError, nearest
from hookloop.metrics.results import Results
from hookloop.metrics.series import (
    WINDOW,
    Moment,
    Series,
    Value,
    read_all,
    read_last,
    read_values,
    smooth_all,
)

EPOCH = "train_epoch"
"""The stream of the means over whole training epochs: ``train_epoch/loss``."""

STREAMS = ("train", EPOCH, "val", "test")
"""What the engine writes; a name that begins with none of these is a hook's own."""


PLACE = ("time", "phase", "span", "iter", "epoch")
"""What every record has besides its numbers, and no number can be called."""


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip("/ "):
        raise MetricError(f"{name!r} is not the name of a metric: write text, such as 'val/loss'.")
    if name in PLACE:
        raise MetricError(
            f"A metric cannot be called '{name}', which every record has already: write "
            f"'train/{name}', for example."
        )


def stream_of(name: str) -> str:
    """Return the stream of a name; empty for a hook's own.

    >>> stream_of("val/accuracy"), stream_of("knn/accuracy"), stream_of("quality")
    ('val', '', '')
    """
    stream, slash, _ = name.partition("/")
    return stream if slash and stream in STREAMS else ""


class MetricStore:
    """Named series, ``train/loss`` or ``val/accuracy``: the part before the slash is the stream.

    >>> store = MetricStore()
    >>> store.put("train/loss", 0.5)
    >>> store.put("train/loss", 0.3)
    >>> store.latest("train/loss"), store.stream("train")
    (0.3, {'train/loss': 0.4})

    Attributes:
        moment: The iteration and the epoch that what is put belongs to. The loop sets it: within an
            iteration it is the one that is being made.
    """

    def __init__(self) -> None:
        self.moment: Moment = (0, 0)
        self._series: dict[str, Series] = {}
        self._is_repeated = False

    def series(self, name: str) -> Series:
        """Return the series of a name, made when it is new."""
        found = self._series.get(name)
        if found is None:
            _check_name(name)
            found = self._series[name] = Series()
        return found

    def put(self, name: str, value: Value | int, weight: float = 1.0) -> None:
        """Record a number; a tensor is copied on its device and not read."""
        if self._is_repeated and name in self:
            return
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise MetricError(
                    f"'{name}' is a tensor of shape {tuple(value.shape)}: put a scalar."
                )
            # A copy, since the caller may go on to change the tensor in place.
            value = value.detach().clone().reshape(())
        else:
            try:
                value = float(value)
            except (TypeError, ValueError) as error:
                raise MetricError(f"'{name}' is {value!r}: put a number.") from error
        series = self.series(name)
        series.add(value, weight)
        series.at = self.moment

    def replace(self, name: str, value: Value | int) -> None:
        """Record a number in the place of the one that was put last in the current epoch.

        >>> store = MetricStore()
        >>> store.put("val/loss", 0.5)
        >>> store.replace("val/loss", 0.3)
        >>> store.stream("val")
        {'val/loss': 0.3}
        """
        series = self.series(name)
        if series.is_current:
            series.replace(float(value))
        else:
            self.put(name, value)

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Record only what has no value yet, while hooks act again as they did before a resume.

        >>> store = MetricStore()
        >>> store.put("size", 5)
        >>> with store.repeated():
        ...     store.put("size", 6)
        >>> store.latest("size")
        5.0
        """
        self._is_repeated = True
        try:
            yield
        finally:
            self._is_repeated = False

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

    def stream(self, name: str) -> Results:
        """Read the epoch means of everything that was put under ``name/``, in one copy."""
        chosen = self._current(name)
        read_all([self._series[full] for full in chosen])
        return Results(name, {full: float(self._series[full].mean()) for full in chosen})

    def recent(self, name: str, window: int = WINDOW) -> dict[str, float]:
        """Read the means of the last ``window`` values instead, by full name, in one copy.

        What was put in earlier epochs only, such as a statistic of those, is left out.
        """
        return self.smooth(self._current(name), window)

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Count the values that were ever put under some names."""
        return {name: self._series[name].count for name in names if name in self}

    def after(self, seen: Mapping[str, int], names: Iterable[str]) -> dict[str, list[float]]:
        """Read what was put under some names since `counts` returned ``seen``, in one copy.

        Of each name `WINDOW` values at most; a name without any is left out. Nothing is noted in
        the store, whose state does not depend on who has looked at it.
        """
        new = {name: count - seen.get(name, 0) for name, count in self.counts(names).items()}
        chosen = {name: min(WINDOW, count) for name, count in new.items() if count > 0}
        read = read_last([self._series[name] for name in chosen], list(chosen.values()))
        return dict(zip(chosen, read, strict=True))

    def others(self) -> dict[str, float]:
        """Read the newest values of the names that are in none of the engine's streams."""
        names = [name for name in self.names() if not stream_of(name)]
        return self.smooth(names, 1)

    def news(
        self, reader: str, now: Moment, skip: Callable[[str], bool] | None = None
    ) -> dict[Moment, dict[str, float]]:
        """Read what was put since the reader did this last, by full name, in one copy.

        A value is the mean of what came, of `WINDOW` values at most, and stands under the moment of
        the last of them; the moments are in order.

        Args:
            reader: Who reads; each gets everything once.
            now: The current moment.
            skip: Which names the reader leaves for a later time.
        """
        chosen: dict[str, Series] = {}
        windows: list[int] = []
        for name, series in self._series.items():
            if series.is_empty or (skip is not None and skip(name)):
                continue
            if new := series.count_new(reader):
                chosen[name] = series
                windows.append(new if new < WINDOW else WINDOW)
        means = smooth_all(list(chosen.values()), windows)
        found: dict[Moment, dict[str, float]] = {now: {}}
        current = found[now]
        for (name, series), mean in zip(chosen.items(), means, strict=True):
            at = series.at
            # After: an iteration that failed was not completed. Of the same iteration: its last
            # batch also ended the epoch, which the others of its numbers know.
            if at is None or at[0] >= now[0]:
                current[name] = mean
            else:
                found.setdefault(at, {})[name] = mean
        if not current:
            del found[now]
        return found if list(found) == [now] else dict(sorted(found.items()))

    def settle(self) -> None:
        """Take everything so far for read, by every reader."""
        for series in self._series.values():
            series.settle()

    def put_at(self, iteration: int) -> dict[str, float]:
        """Read the newest value of every name whose newest is of this iteration."""
        latest = self.all_latest()
        return {
            name: value
            for name, value in latest.items()
            if (at := self._series[name].at) is None or at[0] == iteration
        }

    def all_latest(self) -> dict[str, float]:
        """Read the newest value of every name, in one copy."""
        names = self.names()
        (values,) = read_values([[self._series[name].latest for name in names]])
        return dict(zip(names, values, strict=True))

    def end_epoch(self) -> None:
        """Put the means of the training epoch under names of their own; nothing is read."""
        for name in self._current("train"):
            self.put(f"{EPOCH}/{name.removeprefix('train/')}", self._series[name].mean())

    def has_epoch_mean(self, name: str) -> bool:
        """Return whether a name is one of iterations, of which an epoch mean was put."""
        return name.startswith("train/") and f"{EPOCH}/{name.removeprefix('train/')}" in self

    def start_epoch(self, stream: str) -> None:
        """Begin the epoch means of a stream again."""
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
