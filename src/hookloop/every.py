"""The interval between two actions: every 50 iterations, every 2 epochs, every 10 minutes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Protocol

from hookloop.errors import IntervalError

Unit = Literal["iters", "epochs", "seconds"]

_UNITS: dict[str, tuple[Unit, float]] = {
    "it": ("iters", 1),
    "iter": ("iters", 1),
    "iters": ("iters", 1),
    "iteration": ("iters", 1),
    "iterations": ("iters", 1),
    "ep": ("epochs", 1),
    "epoch": ("epochs", 1),
    "epochs": ("epochs", 1),
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
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-zA-Z]*)\s*")


class Counters(Protocol):
    """What an interval is compared with: the completed iterations and epochs."""

    iter: int
    epoch: int


@dataclass(frozen=True)
class Every:
    """An interval: every ``count`` iterations, epochs or seconds.

    ``due`` answers for iterations and epochs, where the counters are enough. An interval in seconds
    needs a clock and the time of the last action, which its owner keeps.

    >>> Every.parse("2 epochs")
    Every(count=2, unit='epochs')
    >>> str(Every.parse(50)), str(Every.parse("10 min"))
    ('50 iters', '10 min')
    """

    count: float
    unit: Unit

    @classmethod
    def parse(cls, value: Every | int | str) -> Every:
        """Read ``50``, ``"50 iters"``, ``"2 epochs"``, ``"10 min"``; a bare number counts iters."""
        if isinstance(value, Every):
            return value
        # True is an int to Python, but `every: yes` in a config is not an interval of 1.
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise IntervalError(f"{value!r} is not an interval: write {_FORMS}.")
        match = _TEXT.fullmatch(str(value))
        number, word = match.groups() if match else (None, "")
        unit = _UNITS.get(word.lower()) if word else _UNITS["iters"]
        if match is None or unit is None or not (number or word):
            raise IntervalError(f"{value!r} is not an interval: write {_FORMS}.")
        name, factor = unit
        count = float(number or 1) * factor
        # Half a minute can be waited for, half an iteration cannot.
        if count <= 0 or (name != "seconds" and count != int(count)):
            raise IntervalError(
                f"{value!r} is not an interval: its count must be a positive whole number."
            )
        # A count of iterations stays an int, so that it prints as "50 iters" and not "50.0 iters".
        return cls(count if name == "seconds" else int(count), name)

    def due(self, progress: Counters) -> bool:
        """Return whether the iteration or epoch just completed ends an interval."""
        # From the counters alone, so that a resumed run acts in the same iterations.
        if self.unit == "iters":
            return progress.iter % self.count == 0
        if self.unit == "epochs":
            return progress.epoch % self.count == 0
        raise IntervalError(f"'{self}' is an interval in time: it needs a clock, not counters.")

    def reached(self, progress: Counters) -> bool:
        """Return whether ``count`` iterations or epochs are done, as for a point in the run."""
        return (progress.epoch if self.unit == "epochs" else progress.iter) >= self.count

    def __str__(self) -> str:
        if self.unit != "seconds":
            return f"{self.count} {self.unit if self.count != 1 else self.unit[:-1]}"
        for word, factor in (("h", 3600), ("min", 60)):
            if self.count % factor == 0:
                return f"{int(self.count / factor)} {word}"
        return f"{self.count:g} s"


_FORMS = "a number of iterations (50), or '50 iters', '2 epochs', '10 min'"
