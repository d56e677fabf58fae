"""`RecordTimes`: how long iterations take and how much of that is waiting for data."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook

if TYPE_CHECKING:
    from hookloop.core.run import Run


class RecordTimes(Hook):
    """Record ``train/data_time`` and ``train/iter_time`` in seconds, every iteration.

    An iteration's time runs from the end of the one before, so that it holds the wait for data and
    the hooks as well; the first of an epoch begins with the epoch, so validation does not count.

    Example:
        >>> RecordTimes().writes
        ('train/data_time', 'train/iter_time')
    """

    writes = ("train/data_time", "train/iter_time")
    draws_random_numbers = False

    def __init__(self) -> None:
        self._since = 0.0
        self._got_data = 0.0

    def before_train(self, run: Run) -> None:
        self._data = run.metrics.series("train/data_time")
        self._iter = run.metrics.series("train/iter_time")

    def before_train_epoch(self, run: Run) -> None:
        self._since = perf_counter()

    def before_train_iter(self, run: Run) -> None:
        self._got_data = perf_counter()  # Recorded later: two at once cost little more than one.

    def after_train_iter(self, run: Run) -> None:
        now = perf_counter()
        self._data.add(self._got_data - self._since)
        self._iter.add(now - self._since)
        self._since = now

    def after_val(self, run: Run) -> None:
        self._since = perf_counter()
