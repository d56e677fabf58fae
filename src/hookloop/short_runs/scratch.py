"""A directory for the time of a short run, removed whatever ends the process, but for a kill."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from types import FrameType


class Terminated(SystemExit):
    """Raised where SIGTERM arrives, so that what has begun is cleaned up."""


@contextmanager
def scratch_directory(purpose: str) -> Iterator[str]:
    """Make a directory that is removed at the end, also at that by Ctrl-C or SIGTERM."""
    with (
        _terminating_in_order(),
        # Another rank that fails late may still write there.
        TemporaryDirectory(prefix=f"hookloop-{purpose}-", ignore_cleanup_errors=True) as folder,
    ):
        yield folder


@contextmanager
def _terminating_in_order() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` instead of ending the process at once."""
    is_main = threading.current_thread() is threading.main_thread()
    # A handler of someone else, or a signal that is ignored on purpose, stays.
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # A second one ends the process at once.
        if os.getpid() != process:  # A forked child, such as a worker, dies as it would without.
            os.kill(os.getpid(), number)
            return
        raise Terminated(128 + number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
