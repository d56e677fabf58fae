"""`RecordThroughput`: measure how many samples are trained on per second."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook, Priority
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of

if TYPE_CHECKING:
    from hookloop.core.run import Run


class RecordThroughput(Hook):
    """Record ``train/samples_per_second`` and ``train/time_per_sample``, over all ranks.

    The time includes everything except validations, so also data and hooks. Nothing waits for the
    GPU: over an interval its queue evens out.

    Args:
        every: Interval in iterations or time; the rest of an epoch is recorded at its end.

    Example:
        >>> RecordThroughput(every=100).writes
        ('train/samples_per_second', 'train/time_per_sample')
    """

    ranks = "first"
    writes = ("train/samples_per_second", "train/time_per_sample")
    priority = Priority.VERY_HIGH  # Before hooks that replace the batch.
    draws_random_numbers = False

    def __init__(self, every: Every | int | str = 50) -> None:
        self.every = interval_of(self, every)
        self._since = perf_counter()
        self._paused = 0.0
        self._samples = 0
        self._iter = -1
        self._counted: set[int] = set()

    def before_train_epoch(self, run: Run) -> None:
        self._restart()

    def before_forward(self, run: Run) -> None:
        if run.phase != "train":
            return
        if self._iter != run.progress.iter:
            self._iter = run.progress.iter
            self._counted.clear()
            if not run.world.is_alone:
                self._samples += _samples_of_all_ranks(run)
        if not run.world.is_alone:
            return
        # Each microbatch counts once, also if several optimizers train on it. By id, because
        # batches need not be hashable; within an iteration they are all alive.
        if id(run.batch) not in self._counted:
            self._counted.add(id(run.batch))
            self._samples += run.batch_size

    def after_train_iter(self, run: Run) -> None:
        self._record(run)

    def after_train_epoch(self, run: Run) -> None:
        self._record(run)

    def before_val(self, run: Run) -> None:
        self._paused = perf_counter()

    def after_val(self, run: Run) -> None:
        self._since += perf_counter() - self._paused

    def _record(self, run: Run) -> None:
        seconds, samples = perf_counter() - self._since, self._samples
        if samples and seconds > 0:
            run.metrics.put("train/samples_per_second", samples / seconds)
            run.metrics.put("train/time_per_sample", seconds / samples)
        self._restart()

    def _restart(self) -> None:
        self._since, self._samples = perf_counter(), 0


def _samples_of_all_ranks(run: Run) -> int:
    """Return how many samples all ranks train on in this iteration."""
    shares = (run.train_data.shares() if run.train_data is not None else None) or []
    # Where each rank has data of its own, the others are taken to have as many samples.
    return sum(one.own * run.world.size if one.total is None else one.total for one in shares)
