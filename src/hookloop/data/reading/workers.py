"""The worker processes of a `DataLoader`: how they handle signals, and how they end.

A signal that ends a run is often sent to all of its processes. The workers ignore it, because the
training process still needs their batches to finish its iteration. They end with the run, or with
the training process if that dies first.
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

import torch

from hookloop.data.random.per_sample import seed_process
from hookloop.errors import DataError
from hookloop.parallel.signals import STOP_SIGNALS

try:  # A private name of torch's, which keeps it from raising when a worker is killed.
    from torch._C import _remove_worker_pids
except ImportError:  # Then torch reports a worker that had to be killed; it is dead all the same.

    def _remove_worker_pids(loader_id: int) -> None:
        """Do nothing."""


WorkerInit = Callable[[int], object]

PATIENCE = 2.0
"""Seconds that a worker has to finish its sample when the run has ended."""

POLL = 1.0
"""Seconds between two checks whether the parent is still the same."""

BEFORE_MULTIPROCESSING = 100
"""Priority at exit: before multiprocessing waits for its children, without a limit."""


class ShieldedInit:
    """Prepares a worker so that it ignores the signals that end a run, and dies with its parent.

    Args:
        init: The loader's own ``worker_init_fn``, called afterwards.
        rank: Of which rank it is a worker. All ranks draw the same seed for their workers, which
            is changed so that these do not draw the same numbers; not for rank 0.
    """

    def __init__(self, init: WorkerInit | None, rank: int = 0) -> None:
        self.init = init
        self.rank = rank

    def __call__(self, worker: int) -> None:
        """Prepare the worker of this number."""
        for name in STOP_SIGNALS:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
        threading.Thread(target=_die_with_parent, name="hookloop-parent", daemon=True).start()
        if self.rank:
            # An odd factor of 64 bits: seeds of ranks and of workers never meet.
            seed_process((torch.initial_seed() + self.rank * 0x9E3779B97F4A7C15) % 2**64)
        if self.init is not None:
            self.init(worker)


def _die_with_parent() -> None:
    """Wait for the end of the parent, then end at once."""
    parent, pid = parent_process(), os.getppid()
    if parent is None:  # Not a process of multiprocessing.
        return
    while os.getppid() == pid:
        # Processes that were forked later hold the same pipe open, so that it may never report the
        # end of the parent. The parent's number changes in any case.
        if wait([parent.sentinel], POLL):
            break
    os._exit(1)  # Not sys.exit, which in a thread ends only the thread.


class Workers:
    """The workers of one loader, over all of its passes."""

    def __init__(self) -> None:
        self._passes: WeakSet[Any] = WeakSet()

    def watch(self, batches: Iterator[object]) -> Iterator[object]:
        """Make sure that the workers of a pass end with it, and with this process."""
        workers = getattr(batches, "_workers", None)
        if workers and batches not in self._passes:
            self._passes.add(batches)
            key = id(batches)  # torch's own watch over these processes uses the same key.
            # A weak reference: the finalizer must not keep the pass alive that it waits for.
            arguments = (key, workers, ref(batches))
            Finalize(batches, _kill, arguments, exitpriority=BEFORE_MULTIPROCESSING)
        return batches

    def end(self) -> bool:
        """End the workers that are left; return whether that interrupted a pass."""
        # Deleting the passes is not enough: the traceback of an exception may still refer to one.
        passes = list(self._passes)
        for batches in passes:
            _end(batches)
        self._passes.clear()
        return bool(passes)


def _end(batches: Any) -> None:  # noqa: ANN401 - a private class of torch
    """Let torch shut down the workers of a pass; kill those that take too long."""
    workers: list[BaseProcess] = batches._workers
    if batches._worker_pids_set:  # Otherwise torch would raise when one of them is killed.
        batches._worker_pids_set = False
        _remove_worker_pids(id(batches))
    # torch waits for each worker in turn, for seconds each. The timer bounds the whole wait.
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
    """Kill the workers of a pass that are left."""
    if key is not None:
        with suppress(ValueError):  # torch no longer watches them.
            _remove_worker_pids(key)
    if (batches := owner()) is not None:  # At exit: torch must not try to shut them down again.
        batches._worker_pids_set = False
        batches._shutdown = True
    _send_kill(workers)
    for worker in workers:
        worker.join(PATIENCE)


def _send_kill(workers: Sequence[BaseProcess]) -> None:
    for worker in workers:
        worker.kill()


def check_main_is_guarded() -> None:
    """Reject training in a worker process that is still importing the script of its parent.

    A spawned worker of a DataLoader imports the script, and would train as well.
    """
    # Python itself uses this attribute to reject starting further processes there.
    if getattr(current_process(), "_inheriting", False):
        raise DataError(
            "A process that loads data imports your script, and the script trains when it is "
            "imported. Put what trains under \"if __name__ == '__main__':\"; functions and classes "
            "stay where they are."
        )
