"""``mmengine.utils.Timer``: how long things take."""

from __future__ import annotations

import sys
from time import time
from types import TracebackType
from typing import Self


class TimerError(Exception):
    """A timer was asked before it was started."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class Timer:
    """A clock for a block of code, which prints the seconds when the block ends.

    Args:
        start: Whether the clock starts now.
        print_tmpl: The text to print, with a place for the seconds.
    """

    def __init__(self, start: bool = True, print_tmpl: str | None = None) -> None:
        self._is_running = False
        self.print_tmpl = print_tmpl or "{:.3f}"
        if start:
            self.start()

    @property
    def is_running(self) -> bool:
        """Whether the clock has started."""
        return self._is_running

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stdout.write(self.print_tmpl.format(self.since_last_check()) + "\n")
        self._is_running = False

    def start(self) -> None:
        """Start the clock; one that runs keeps its start."""
        if not self._is_running:
            self._began = time()
            self._is_running = True
        self._checked = time()

    def since_start(self) -> float:
        """Return the seconds since the start."""
        self._check()
        return self._checked - self._began

    def since_last_check(self) -> float:
        """Return the seconds since the last check, or since the start."""
        before = self._checked if self._is_running else 0.0
        self._check()
        return self._checked - before

    def _check(self) -> None:
        if not self._is_running:
            raise TimerError("timer is not running")
        self._checked = time()


_timers: dict[str, Timer] = {}


def check_time(timer_id: str) -> float:
    """Return the seconds since the last call with this name; 0 at the first call."""
    if timer_id not in _timers:
        _timers[timer_id] = Timer()
        return 0
    return _timers[timer_id].since_last_check()
