"""`LogMemory`: record the memory of host and device during training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.parallel.memory import device_memory, host_memory, memory_summary
from hookloop.runs.layout import write_text
from hookloop.runs.policy import Machine

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class LogMemory(Hook):
    """Record ``train/memory/...`` in MiB, and write a summary at given iterations.

    ``rss`` and ``rss_peak`` are the resident memory of the process; ``device``, ``device_peak`` and
    ``device_reserved`` that of a CUDA or MPS device, if there is one. On many ranks each number is
    the largest of all ranks; the summary is that of the first.

    Args:
        every: Interval in iterations.
        summary_at: Completed iterations after which to write ``memory_iter_<n>.txt``, with details
            on CUDA.

    Example:
        >>> LogMemory(every=100, summary_at=[1, 50]).writes
        ('train/memory/*',)
    """

    writes = (Machine("train/memory/*"),)
    draws_random_numbers = False

    def __init__(self, every: Every | int | str = 50, summary_at: Sequence[int] = ()) -> None:
        if any(iter < 1 for iter in summary_at):
            raise HookError("LogMemory: summary_at holds completed iterations, 1 or more.")
        # Not self.every: the plan would then skip iterations that summary_at names.
        self._every = interval_of(self, every)
        if self._every.unit != "iters":
            raise HookError(f"LogMemory: give iterations, not '{self._every}'.")
        self.summary_at = frozenset(summary_at)

    def after_train_iter(self, run: Run) -> None:
        if self._every.due(run.progress):
            memory = host_memory() | device_memory(run.device)
            numbers = torch.tensor(list(memory.values()), dtype=torch.float64)
            largest = numbers if run.world.is_alone else run.reduce(numbers, "max")
            for name, number in zip(memory, largest.tolist(), strict=True):
                run.metrics.put(f"train/memory/{name}", number)
        if run.progress.iter in self.summary_at and run.world.is_main:
            path = run.dir / f"memory_iter_{run.progress.iter}.txt"
            write_text(path, memory_summary(run.device))
