"""`Sampler`: takes samples at an interval, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

FIRST_AFTER = 1.0
"""Seconds to the first sample, if the interval is longer."""
PATIENCE = 10.0
"""Seconds to wait for the last sample."""


class Sampler:
    """Calls a function in a thread of its own: soon, then at the interval, and when it is closed.

    A function that fails is reported, and not called again.

    Args:
        sample: Takes a sample and passes it on.
        seconds: The interval.
        report: Called in the thread with the error, if there is one.
    """

    def __init__(
        self, sample: Callable[[], None], seconds: float, report: Callable[[BaseException], None]
    ) -> None:
        self._sample = sample
        self._seconds = seconds
        self._report = report
        self._end = threading.Event()
        # With the context of the caller: what the thread logs belongs to the run that starts it. A
        # daemon: a driver that hangs must not keep the process alive.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._work,), name="sample", daemon=True
        )
        self._thread.start()

    def close(self) -> bool:
        """Take the last sample and end the thread; return whether it has ended."""
        self._end.set()
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            is_last = self._end.wait(min(FIRST_AFTER, self._seconds))
            self._sample()
            while not is_last:
                is_last = self._end.wait(self._seconds)
                self._sample()
        except Exception as error:  # noqa: BLE001 - reported, and the run continues without it
            self._report(error)
