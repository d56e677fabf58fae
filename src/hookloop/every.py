"""The interval between two actions: every 50 iterations, every 2 epochs, every 10 minutes.

And milestones: values that hold from a moment of a run on.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, TypeVar, cast

from hookloop.errors import IntervalError

Unit = Literal["iters", "epochs", "seconds", "samples", "tokens"]

COUNTED = ("samples", "tokens")
"""Units that are counted only if somebody asks for them."""

_UNITS: dict[str, tuple[Unit, float]] = {
    "it": ("iters", 1),
    "iter": ("iters", 1),
    "iters": ("iters", 1),
    "iteration": ("iters", 1),
    "iterations": ("iters", 1),
    "ep": ("epochs", 1),
    "epoch": ("epochs", 1),
    "epochs": ("epochs", 1),
    "sample": ("samples", 1),
    "samples": ("samples", 1),
    "token": ("tokens", 1),
    "tokens": ("tokens", 1),
    "s": ("seconds", 1),
    "sec": ("seconds", 1),
    "second": ("seconds", 1),
    "seconds": ("seconds", 1),
    "min": ("seconds", 60),
    "minute": ("seconds", 60),
    "minutes": ("seconds", 60),
    "h": ("seconds", 3600),
    "hour": ("seconds", 3600),
    "hours": ("seconds", 3600),
}
# The number may be missing: `every: epoch` means every epoch.
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*(?:([kKMB])\s+)?([a-zA-Z]*)\s*")
Method = TypeVar("Method", bound=Callable[..., None])

_TIMES = {None: 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}


class Counters(Protocol):
    """What an interval is compared with: the completed iterations and epochs.

    Those of a run also have ``samples`` and ``tokens``, with those of the last iteration.
    """

    iter: int
    epoch: int


class HasProgress(Protocol):
    """A run, as far as its intervals need it."""

    progress: Counters


@dataclass(frozen=True)
class Every:
    """An interval: every ``count`` iterations, epochs, samples, tokens or seconds.

    ``due`` answers where counters are enough. An interval in seconds needs a clock and the time of
    the last action, which its owner keeps.

    >>> Every.parse("2 epochs")
    Every(count=2, unit='epochs')
    >>> str(Every.parse(50)), str(Every.parse("10 min"))
    ('50 iters', '10 min')
    >>> str(Every.parse("2M tokens"))
    '2M tokens'
    """

    count: float
    unit: Unit

    @classmethod
    def parse(cls, value: Every | int | str) -> Every:
        """Read ``50`` (iterations), ``"2 epochs"``, ``"10 min"``, ``"2M tokens"``."""
        if isinstance(value, Every):
            return value
        # True is an int to Python, but `every: yes` in a config is not an interval of 1.
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise IntervalError(f"{value!r} is not an interval: write {_FORMS}.")
        match = _TEXT.fullmatch(str(value))
        number, times, word = match.groups() if match else (None, None, "")
        unit = _UNITS.get(word.lower()) if word else _UNITS["iters"]
        if match is None or unit is None or not (number or word):
            raise IntervalError(f"{value!r} is not an interval: write {_FORMS}.")
        name, factor = unit
        # Rounded, because 2.3 times 10**6 is not a whole number.
        count = round(float(number or 1) * factor * _TIMES[times], 6)
        # Half a minute can be waited for, half an iteration cannot.
        if count <= 0 or (name != "seconds" and count != int(count)):
            raise IntervalError(
                f"{value!r} is not an interval: its count must be a positive whole number."
            )
        # A count of iterations stays an int, so that it prints as "50 iters" and not "50.0 iters".
        return cls(count if name == "seconds" else int(count), name)

    def due(self, progress: Counters) -> bool:
        """Return whether the iteration or epoch just completed ends an interval.

        One in samples or tokens ends in the iteration in which the count passes a multiple.
        """
        # From the counters alone, so that a resumed run acts in the same iterations.
        if self.unit == "iters":
            return progress.iter % self.count == 0
        if self.unit == "epochs":
            return progress.epoch % self.count == 0
        if self.unit == "seconds":
            raise IntervalError(f"'{self}' is an interval in time: it needs a clock, not counters.")
        done, last = self.done(progress), cast("int", getattr(progress, f"last_{self.unit}"))
        return done // self.count > (done - last) // self.count

    def done(self, progress: Counters) -> int:
        """Return how much is done, in the unit of the interval."""
        if self.unit in ("iters", "epochs"):
            return progress.epoch if self.unit == "epochs" else progress.iter
        if (done := cast("int | None", getattr(progress, self.unit, None))) is None:
            raise IntervalError(
                f"'{self}' cannot be compared, because nobody counts {self.unit}: a hook that does "
                f"so by itself declares counts = ('{self.unit}',)."
            )
        return done

    def reached(self, progress: Counters) -> bool:
        """Return whether ``count`` of its unit are done, as for a point in the run."""
        return self.done(progress) >= self.count

    def fits(self, clock: str | None, *, ahead: bool) -> bool:
        """Return whether it can limit what acts at a point with this clock."""
        if self.unit in COUNTED:  # They are counted when an iteration is done.
            return clock == "iters" and not ahead
        return clock is not None and self.unit in ("seconds", clock)

    def __str__(self) -> str:
        if self.unit in COUNTED and self.count > 0:
            for letter, times in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
                if self.count % times == 0:
                    return f"{int(self.count / times)}{letter} {self.unit}"
        if self.unit != "seconds":
            return f"{self.count} {self.unit if self.count != 1 else self.unit[:-1]}"
        for word, factor in (("h", 3600), ("min", 60)):
            if self.count % factor == 0:
                return f"{int(self.count / factor)} {word}"
        return f"{self.count:g} s"


def count_of(number: float, noun: str) -> str:
    """Return a number with its noun, which has an ending unless there is one.

    >>> count_of(1, "epoch"), count_of(3, "epoch"), count_of(1200, "batch")
    ('1 epoch', '3 epochs', '1,200 batches')
    """
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    ending = "" if number == 1 else "es" if noun.endswith("tch") else "s"
    return f"{text} {noun}{ending}"


_FORMS = "a number of iterations (50), or '50 iters', '2 epochs', '10 min', '2M tokens'"


def limit(interval: Every | int | str) -> Callable[[Method], Method]:
    """Limit one method of a hook to an interval.

    >>> class Sample:
    ...     @limit("100 iters")
    ...     def after_train_iter(self, run): ...
    >>> str(Sample.after_train_iter.every)
    '100 iters'
    """
    parsed = Every.parse(interval)

    def mark(method: Method) -> Method:
        setattr(method, "every", parsed)  # noqa: B010 - functions carry no typed attributes
        return method

    return mark


def limited(method: Callable[..., None], interval: Every, ahead: int) -> Callable[..., None]:
    """Wrap a method of a hook so that it acts only when its interval is due.

    Args:
        method: It is called with the run and what else the mount point gives.
        interval: When it acts.
        ahead: 1 where the counter moves after the mount point, so that what is under way counts.
    """
    count = interval.count

    if interval.unit == "seconds":
        last = monotonic()  # The first call comes after a whole interval, as with counters.

        def when_time_has_passed(run: HasProgress, *args: object) -> None:
            nonlocal last
            if (now := monotonic()) - last >= count:
                last = now
                method(run, *args)

        return when_time_has_passed

    if interval.unit in COUNTED:
        return lambda run, *args: method(run, *args) if interval.due(run.progress) else None

    if interval.unit == "epochs":

        def when_epoch_is_due(run: HasProgress, *args: object) -> None:
            if (run.progress.epoch + ahead) % count == 0:
                method(run, *args)

        return when_epoch_is_due

    def when_iter_is_due(run: HasProgress, *args: object) -> None:
        if (run.progress.iter + ahead) % count == 0:
            method(run, *args)

    return when_iter_is_due


@dataclass(frozen=True)
class Milestones:
    """Values, each of which holds from a moment of a run on.

    All moments but the start are in one unit, so that their order is known beforehand.

    >>> smoothing = Milestones.parse({0: 0.1, "5 epochs": 0.0})
    >>> smoothing.at(4), smoothing.at(5), round(smoothing.between(2), 2)
    (0.1, 0.0, 0.06)
    """

    moments: tuple[int, ...]
    values: tuple[float, ...]
    unit: Unit

    @classmethod
    def parse(cls, given: Mapping[int | str, float]) -> Milestones:
        """Read ``{0: 1, 1000: 2}`` or ``{0: 1, "5 epochs": 4}``; the first key is the start, 0."""
        counts: dict[int, float] = {}
        units: set[Unit] = set()
        for key, value in given.items():
            moment = _moment(key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise IntervalError(f"{key!r}: {value!r} is not a number.")
            if (count := int(moment.count)) in counts:
                raise IntervalError(f"{key!r} is given twice.")
            counts[count] = value
            units |= {moment.unit} if count else set()
        if 0 not in counts:
            raise IntervalError("the value at the start is missing: write {0: ..., ...}.")
        if len(units) > 1:
            raise IntervalError(
                f"the moments are in {' and '.join(sorted(units))}: write all in one unit."
            )
        moments = tuple(sorted(counts))
        return cls(moments, tuple(counts[one] for one in moments), next(iter(units), "iters"))

    def at(self, done: int) -> float:
        """Return the value of the last moment that is reached."""
        return self.values[bisect_right(self.moments, done) - 1]

    def between(self, done: int) -> float:
        """Return the value on the straight line from the last moment to the next one."""
        last = bisect_right(self.moments, done) - 1
        if last + 1 == len(self.moments):
            return self.values[last]
        first, end = self.moments[last], self.moments[last + 1]
        rise = self.values[last + 1] - self.values[last]
        return self.values[last] + rise * (done - first) / (end - first)

    def done(self, progress: Counters) -> int:
        """Return how much is done, in the unit of the moments."""
        return Every(1, self.unit).done(progress)


def _moment(key: object) -> Every:
    """Read a moment; a config that was written and read again has text in place of numbers."""
    if str(key).strip().partition(" ")[0] == "0" and not isinstance(key, bool):
        return Every(0, "iters")
    moment = Every.parse(cast("int | str", key))
    if moment.unit == "seconds":
        raise IntervalError(f"{key!r} is a time, which no resume could repeat: write a count.")
    return moment
