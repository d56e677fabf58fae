"""The processes of a `DataLoader`: what they do about signals, and how they end.

A signal that ends a run goes to all of its processes. The workers ignore it, because the training
process still needs their batches to finish its iteration. They end with the run, or, should the
training process die first, with that.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import current_process, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any
from weakref import WeakSet, ref

from torch._C import _remove_worker_pids

from hookloop.errors import DataError
from hookloop.parallel.signals import STOP_SIGNALS

WorkerInit = Callable[[int], object]

PATIENCE = 2.0
"""Seconds in which a worker may finish its sample when the run has ended."""

POLL = 1.0
"""Seconds between two looks at who the parent is, where its death cannot be waited for."""

BEFORE_MULTIPROCESSING = 100
"""Priority of what happens at exit: before multiprocessing waits for its children, forever."""


class Shielded:
    """Prepares a worker so that it ignores the signals that end a run, and dies with its parent.

    Args:
        init: The loader's own ``worker_init_fn``, called afterwards.
    """

    def __init__(self, init: WorkerInit | None) -> None:
        self.init = init

    def __call__(self, worker: int) -> None:
        """Prepare the worker of this number."""
        for name in STOP_SIGNALS:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
        threading.Thread(target=_die_with_parent, name="hookloop-parent", daemon=True).start()
        if self.init is not None:
            self.init(worker)


def _die_with_parent() -> None:
    """Wait for the end of the parent, and end at once."""
    parent, pid = parent_process(), os.getppid()
    if parent is None:  # Not a process of multiprocessing.
        return
    while os.getppid() == pid:
        # Processes forked later hold the same pipe open, hence the look at the parent's number.
        if wait([parent.sentinel], POLL):
            break
    os._exit(1)


class Workers:
    """The workers of one loader, over all of its passes."""

    def __init__(self) -> None:
        self._passes: WeakSet[Any] = WeakSet()

    def watch(self, batches: Iterator[object]) -> Iterator[object]:
        """Make sure that the workers of a pass end with it, and with this process."""
        workers = getattr(batches, "_workers", None)
        if workers and batches not in self._passes:
            self._passes.add(batches)
            key = id(batches)  # Under which torch watches over the same processes.
            arguments = (key, workers, ref(batches))
            Finalize(batches, _kill, arguments, exitpriority=BEFORE_MULTIPROCESSING)
        return batches

    def end(self) -> bool:
        """End those that are left; return whether a pass was cut off by that.

        An exception may still hold on to their pass, and so would keep them alive.
        """
        passes = list(self._passes)
        for batches in passes:
            _end(batches)
        self._passes.clear()
        return bool(passes)


def _end(batches: Any) -> None:  # noqa: ANN401 - a private class of torch
    """Let torch end the workers of a pass in order; kill those that take too long."""
    workers: list[BaseProcess] = batches._workers
    if batches._worker_pids_set:  # Else torch would raise when one of them is killed.
        batches._worker_pids_set = False
        _remove_worker_pids(id(batches))
    killer = threading.Timer(PATIENCE, _send_kill, [workers])
    killer.daemon = True
    killer.start()
    try:
        batches._shutdown_workers()
    finally:
        killer.cancel()
        _kill(None, workers)


def _kill(
    key: int | None, workers: Sequence[BaseProcess], owner: Callable[[], Any] = lambda: None
) -> None:
    """End what is left of the workers of a pass."""
    if key is not None:
        with suppress(ValueError):  # It has forgotten them already.
            _remove_worker_pids(key)
    if (batches := owner()) is not None:  # The process ends, and torch has nothing more to do.
        batches._worker_pids_set = False
        batches._shutdown = True
    _send_kill(workers)
    for worker in workers:
        worker.join(PATIENCE)


def _send_kill(workers: Sequence[BaseProcess]) -> None:
    for worker in workers:
        worker.kill()


def check_main_is_guarded() -> None:
    """Reject to train in a process that was started for another one and still imports its script.

    Such a process, a worker of a DataLoader where processes are spawned, would train as well.
    """
    # The mark by which Python itself rejects to start further processes there.
    if getattr(current_process(), "_inheriting", False):
        raise DataError(
            "A process that is to load data imports your script, and the script trains when it is "
            "imported. Put what trains under \"if __name__ == '__main__':\"; functions and classes "
            "stay where they are."
        )
