"""`RecordTimes`: measure how long iterations take and how long they wait for data."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook
from hookloop.runs.policy import Machine

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class RecordTimes(Hook):
    """Record ``train/data_time`` and ``train/iter_time`` in seconds, every iteration.

    The time of an iteration starts at the end of the previous one, so it includes the wait for data
    and the hooks. For the first iteration of an epoch it starts with the epoch, so validation does
    not count.

    Example:
        >>> RecordTimes().writes
        ('train/data_time', 'train/iter_time')
    """

    ranks = "first"
    writes = (Machine("train/data_time"), Machine("train/iter_time"))
    draws_random_numbers = False

    def __init__(self) -> None:
        self._since = 0.0
        self._got_data = 0.0

    def before_train(self, run: Run) -> None:
        # Looked up once: this is a default hook, and every iteration pays for it.
        self._data = run.metrics.series("train/data_time")
        self._iter = run.metrics.series("train/iter_time")

    def before_train_epoch(self, run: Run) -> None:
        self._since = perf_counter()

    def before_train_iter(self, run: Run) -> None:
        # Recorded with the other number: two at once cost little more than one.
        self._got_data = perf_counter()

    def after_train_iter(self, run: Run) -> None:
        now = perf_counter()
        self._data.add(self._got_data - self._since)
        self._iter.add(now - self._since)
        self._since = now

    def after_val(self, run: Run) -> None:
        # A validation within an epoch is not part of the next iteration either.
        self._since = perf_counter()
