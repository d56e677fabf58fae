"""What a worker of a `DataLoader` does about the signals that end a run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

WorkerInit = Callable[[int], object]


class Shielded:
    """Prepares a worker so that it outlives the signal that ends the run in order.

    Ctrl-C, and a scheduler's SIGTERM, go to every process of a run. A worker that died of it would
    make the loader fail in the middle of the last iteration, before anything is saved. The second
    SIGTERM ends it, so that a worker which hangs can still be terminated.

    Args:
        init: The loader's own ``worker_init_fn``, called afterwards.
    """

    def __init__(self, init: WorkerInit | None) -> None:
        self.init = init

    def __call__(self, worker: int) -> None:
        """Prepare the worker of this number."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _pass_over_once)
        if self.init is not None:
            self.init(worker)


def _pass_over_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
