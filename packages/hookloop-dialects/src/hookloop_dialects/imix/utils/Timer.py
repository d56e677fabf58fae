"""``imix.utils.Timer``: the clock of iMIX's hooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Timer:
    """Functions of a clock; none of them needs an object."""

    @classmethod
    def now(cls) -> float:
        """Return the time, in seconds from some moment on."""
        return time.perf_counter()

    @classmethod
    def passed_seconds(cls, start: float, end: float) -> float:
        """Return the seconds between two moments."""
        return end - start

    @classmethod
    def run_time(cls, func: Callable[P, R]) -> Callable[P, tuple[R, float]]:
        """Let a function return its result together with the seconds that it took."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> tuple[R, float]:
            began = cls.now()
            result = func(*args, **kwargs)
            return result, cls.passed_seconds(began, cls.now())

        return timed


def batch_iter(data_loader: Iterable[R]) -> Iterator[tuple[int, R, float]]:
    """Yield the batches with their number, and the seconds that reading each took."""
    began = Timer.now()
    for number, batch in enumerate(data_loader):
        yield number, batch, Timer.passed_seconds(began, Timer.now())
        began = Timer.now()
