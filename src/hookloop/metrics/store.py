"""The metric store: named values waiting to be read.

A tensor stays on its device until its number is needed, and reading several names costs one copy.
Memory is bounded: a window of recent values and the sums of the current epoch.
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
    Series,
    Stamp,
    Value,
    read_all,
    read_last,
    read_values,
    smooth_all,
)

EPOCH_STREAM = "train_epoch"
"""The stream of the means over whole training epochs: ``train_epoch/loss``."""

STREAMS = ("train", EPOCH_STREAM, "val", "test")
"""The streams of the engine; a name in none of them is a hook's own."""


RECORD_KEYS = ("time", "phase", "span", "iter", "epoch")
"""The other keys of a record, which no metric can have as a name."""


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip("/ "):
        raise MetricError(f"{name!r} is not the name of a metric: write text, such as 'val/loss'.")
    if name in RECORD_KEYS:
        raise MetricError(
            f"A metric cannot be called '{name}', a key that every record has already: write "
            f"'train/{name}', for example."
        )


def stream_of(name: str) -> str:
    """Return the stream of a name; empty for a name of a hook's own.

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
        stamp: The iteration and epoch that new values belong to. The loop sets it; within an
            iteration it is the number that this iteration will have when it is completed.
    """

    def __init__(self) -> None:
        self.stamp: Stamp = (0, 0)
        self._series: dict[str, Series] = {}
        self._keeps_existing = False

    def __repr__(self) -> str:
        names = ", ".join(self._series) or "nothing yet"
        return f"<MetricStore at iteration {self.stamp[0]}: {names}>"

    def series(self, name: str) -> Series:
        """Return the series of a name; create it if the name is new."""
        found = self._series.get(name)
        if found is None:
            _check_name(name)
            found = self._series[name] = Series()
        return found

    def put(self, name: str, value: Value | int, weight: float = 1.0) -> None:
        """Record a number; a tensor is copied on its device and not read."""
        # Not in `Series.add`, which is on the hot path: at the repeated points hooks use `put`.
        if self._keeps_existing and name in self:
            return
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise MetricError(
                    f"'{name}' is a tensor of shape {tuple(value.shape)}: put a scalar."
                )
            # A copy, since the caller may change the tensor in place later.
            value = value.detach().clone().reshape(())
        else:
            try:
                value = float(value)
            except (TypeError, ValueError) as error:
                raise MetricError(f"'{name}' is {value!r}: put a number.") from error
        series = self.series(name)
        series.add(value, weight)
        series.stamp = self.stamp

    def replace(self, name: str, value: Value | int) -> None:
        """Replace the number that was put last in the current epoch, or record a first one.

        >>> store = MetricStore()
        >>> store.put("val/loss", 0.5)
        >>> store.replace("val/loss", 0.3)
        >>> store.stream("val")
        {'val/loss': 0.3}
        """
        series = self.series(name)
        if series.is_current and not self._keeps_existing:
            series.replace(float(value))
        else:
            self.put(name, value)

    @contextmanager
    def keep_existing(self) -> Iterator[None]:
        """Ignore values for names that have one, within this context.

        For a resume in the middle of an epoch: its hooks act again at the points that the run has
        passed, and what they put is in the checkpoint already.

        >>> store = MetricStore()
        >>> store.put("size", 5)
        >>> with store.keep_existing():
        ...     store.put("size", 6)
        >>> store.latest("size")
        5.0
        """
        self._keeps_existing = True
        try:
            yield
        finally:
            self._keeps_existing = False

    def names(self) -> list[str]:
        """Return the names that have a value."""
        return [name for name, series in self._series.items() if not series.is_empty]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        series = self._series.get(name)
        return series is not None and not series.is_empty

    def latest(self, name: str) -> float:
        """Read the newest value of a name."""
        return float(self._require(name).latest)

    def mean(self, name: str) -> float:
        """Read the mean of a name over the current epoch."""
        series = self._require(name)
        read_all([series])
        return float(series.mean())

    def smooth(self, names: Iterable[str], window: int = WINDOW) -> dict[str, float]:
        """Read the mean of the last ``window`` values of several names, in one copy."""
        chosen = list(names)
        means = smooth_all([self._require(name) for name in chosen], [window] * len(chosen))
        return dict(zip(chosen, means, strict=True))

    def stream(self, name: str) -> Results:
        """Read the mean over the current epoch of all names of a stream, in one copy."""
        chosen = self._names_of_epoch(name)
        read_all([self._series[full] for full in chosen])
        return Results(name, {full: float(self._series[full].mean()) for full in chosen})

    def recent(self, name: str, window: int = WINDOW) -> dict[str, float]:
        """Read the mean of the last ``window`` values of all names of a stream, in one copy.

        Names without a value in the current epoch are left out, such as statistics of the last one.
        """
        return self.smooth(self._names_of_epoch(name), window)

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Count all values that were put so far under some names."""
        return {name: self._series[name].count for name in names if name in self}

    def values_since(
        self, counts: Mapping[str, int], names: Iterable[str]
    ) -> dict[str, list[float]]:
        """Read the values that were put under some names since `counts`, in one copy.

        At most `WINDOW` values of each name; a name without new values is left out. The store does
        not change, so that a hook which only observes leaves no trace in checkpoints.
        """
        new = {name: count - counts.get(name, 0) for name, count in self.counts(names).items()}
        chosen = {name: min(WINDOW, count) for name, count in new.items() if count > 0}
        read = read_last([self._series[name] for name in chosen], list(chosen.values()))
        return dict(zip(chosen, read, strict=True))

    def latest_of_hooks(self) -> dict[str, float]:
        """Read the newest value of each name that is in none of the engine's streams."""
        names = [name for name in self.names() if not stream_of(name)]
        return self.smooth(names, 1)

    def read_new(
        self, reader: str, now: Stamp, skip: Callable[[str], bool] | None = None
    ) -> dict[Stamp, dict[str, float]]:
        """Read the values that are new to a reader, by stamp and full name, in one copy.

        Each number is the mean of the new values of its name, of `WINDOW` at most, under the stamp
        of the last of them. The stamps are in order.

        Args:
            reader: A name for the reader; each reader gets every value once.
            now: The current stamp.
            skip: Returns whether to leave a name for a later read.
        """
        # The names are chosen first, and read together afterwards: that is one copy for all.
        chosen: dict[str, Series] = {}
        windows: list[int] = []
        for name, series in self._series.items():
            if series.is_empty or (skip is not None and skip(name)):
                continue
            if new := series.mark_read(reader):
                chosen[name] = series
                windows.append(new if new < WINDOW else WINDOW)
        means = smooth_all(list(chosen.values()), windows)
        found: dict[Stamp, dict[str, float]] = {now: {}}
        current = found[now]  # First, since nearly all numbers belong here.
        for (name, series), mean in zip(chosen.items(), means, strict=True):
            stamp = series.stamp
            # A later iteration: it failed and was not completed. The same iteration under another
            # epoch: its last batch also ended the epoch, and its numbers belong together.
            if stamp is None or stamp[0] >= now[0]:
                current[name] = mean
            else:
                found.setdefault(stamp, {})[name] = mean
        if not current:
            del found[now]
        # Names are found in the order of their first value, not in that of their stamps.
        return found if list(found) == [now] else dict(sorted(found.items()))

    def mark_all_read(self) -> None:
        """Mark all values as read, by every reader."""
        for series in self._series.values():
            series.mark_all_read()

    def latest_at(self, iteration: int) -> dict[str, float]:
        """Read the newest value of each name that was put in this iteration."""
        latest = self.all_latest()
        return {
            name: value
            for name, value in latest.items()
            if (stamp := self._series[name].stamp) is None or stamp[0] == iteration
        }

    def all_latest(self) -> dict[str, float]:
        """Read the newest value of every name, in one copy."""
        names = self.names()
        (values,) = read_values([[self._series[name].latest for name in names]])
        return dict(zip(names, values, strict=True))

    def end_epoch(self) -> None:
        """Put the mean of each training metric into `EPOCH_STREAM`; nothing is read."""
        # A mean is a tensor that stays on its device, as any other value does.
        for name in self._names_of_epoch("train"):
            self.put(f"{EPOCH_STREAM}/{name.removeprefix('train/')}", self._series[name].mean())

    def has_epoch_mean(self, name: str) -> bool:
        """Return whether a name is a training metric that has an epoch mean."""
        return name.startswith("train/") and f"{EPOCH_STREAM}/{name.removeprefix('train/')}" in self

    def start_epoch(self, stream: str) -> None:
        """Start the epoch means of a stream again."""
        for name, series in self._series.items():
            if name.startswith(f"{stream}/"):
                series.start_epoch()

    def state_dict(self) -> dict[str, object]:
        """Return every series as plain numbers, for a checkpoint of bounded size."""
        filled = {name: series for name, series in self._series.items() if not series.is_empty}
        read_all(list(filled.values()))
        return {name: series.state_dict() for name, series in filled.items()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        # In place: the loop and hooks hold the series that `series` has returned.
        for name, series in state.items():
            self.series(name).load_state_dict(cast("Mapping[str, object]", series))

    def bookmark(self) -> Callable[[], None]:
        """Return what takes back the values that are put from now on, for work that is repeated."""
        marks = {name: series.bookmark() for name, series in self._series.items()}

        def take_back() -> None:
            for name, series in self._series.items():
                if name in marks:
                    marks[name]()
                else:  # In place: whoever has it keeps it.
                    series.load_state_dict(Series().state_dict())

        return take_back

    def clear(self) -> None:
        """Forget every value, before an earlier state is restored."""
        for series in self._series.values():
            series.load_state_dict(Series().state_dict())  # In place, as above.

    def _names_of_epoch(self, stream: str) -> list[str]:
        # With the slash: "train" must not match "train_epoch".
        prefix = f"{stream}/"
        return [
            n for n, series in self._series.items() if n.startswith(prefix) and series.is_current
        ]

    def _require(self, name: str) -> Series:
        if name not in self:
            listed = ", ".join(sorted(self.names())) or "none yet"
            raise MetricError(
                f"No metric '{name}' has been recorded.{nearest(name, self.names())} "
                f"There are: {listed}."
            )
        return self._series[name]
