"""`SnapshotMemory`: write what is in the memory of a GPU, and what put it there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.runs.files import reject_links

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")


class SnapshotMemory(Hook):
    """Write snapshots of torch's CUDA memory, to look at on https://pytorch.org/memory_viz.

    A snapshot has every block of memory with the line of code that allocated it, and the events
    that led there. ``memory_iter_5.pickle`` is written after iteration 5, ``memory_oom.pickle``
    when a run fails because memory ran out; ranks other than the first add their number. Events are
    recorded from the start of the training until nothing is left to write, which takes a few
    percent of the time. On a device other than CUDA a warning says that there is nothing to see.

    This hook has been tested without a GPU only, against the interface that torch documents.

    Args:
        at: Completed iterations, counted from the start of the run, after which to write one.
        on_oom: Whether to write one when memory runs out.
        events: How many events to keep; the oldest are dropped.

    Example:
        >>> SnapshotMemory(at=[5, 100]).at
        (5, 100)
    """

    priority = Priority.LOWEST  # After hooks that allocate memory at the same point.
    draws_random_numbers = False

    def __init__(
        self, at: Sequence[int] = (5,), *, on_oom: bool = True, events: int = 100_000
    ) -> None:
        if any(iteration < 1 for iteration in at):
            raise HookError("SnapshotMemory: at holds completed iterations, 1 or more.")
        if not (at or on_oom):
            raise HookError("SnapshotMemory would write nothing: give at or on_oom.")
        if events < 1:
            raise HookError(f"SnapshotMemory: events must be at least 1, not {events}.")
        self.at = tuple(sorted(at))
        self.on_oom = on_oom
        self.events = events
        self._is_recording = False

    def before_train(self, run: Run) -> None:
        if run.device.type != "cuda":
            _log.warning(
                "SnapshotMemory: the model is on '%s', and torch records the memory of CUDA only: "
                "no snapshot is written.", run.device,
            )  # fmt: skip
            return
        if self._has_more(run):
            torch.cuda.memory._record_memory_history(max_entries=self.events)
            self._is_recording = True

    def after_train_iter(self, run: Run) -> None:
        if self._is_recording and run.progress.iter in self.at:
            self._write(run, f"iter_{run.progress.iter}")
            if not self._has_more(run):
                self._end()

    def on_exception(self, run: Run, error: BaseException) -> None:
        # The error holds the frames of the failed call, and they hold the tensors.
        if self._is_recording and self.on_oom and isinstance(error, torch.OutOfMemoryError):
            self._write(run, "oom")

    def after_run(self, run: Run) -> None:
        self._end()

    def _has_more(self, run: Run) -> bool:
        return self.on_oom or (bool(self.at) and run.progress.iter < self.at[-1])

    def _write(self, run: Run, what: str) -> None:
        of_rank = "" if run.world.is_main else f"_rank_{run.world.rank}"
        path: Path = run.dir / f"memory_{what}{of_rank}.pickle"
        reject_links(path, run.dir)
        torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]
        _log.info("The memory is in '%s': open it on https://pytorch.org/memory_viz.", path)

    def _end(self) -> None:
        if self._is_recording:
            torch.cuda.memory._record_memory_history(enabled=None)
            self._is_recording = False
