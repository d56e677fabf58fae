"""A writer that runs another writer in a thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial

from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Record

Item = list[Record] | threading.Event | None
"""An entry of the queue: records, an event to set when the thread gets there, or None to stop."""

PATIENCE = 60.0
"""Seconds without progress after which a run continues without the writer."""

HURRIED_PATIENCE = 10.0
"""Seconds for which a run that was ended by a signal waits for its writer, in any case."""

PAUSE = 0.2
"""Seconds between two looks at the queue."""


class Background(Writer):
    """Writes in a thread of its own, in order, and never raises.

    The queue is bounded: when it is full, the caller waits, so that nothing is lost and memory does
    not grow. A writer that fails, or makes no progress for a minute, is reported once and switched
    off. The caller opens the writer; `close` ends the thread and closes the writer.

    Args:
        writer: The writer that does the work.
        size: How many calls may wait in the queue.
        patience: Seconds to wait for a writer that makes no progress.
        report: Called once, if the writer fails.
    """

    def __init__(
        self,
        writer: Writer,
        size: int = 1000,
        patience: float = PATIENCE,
        report: Report = warn_of_failure,
    ) -> None:
        self.writer = writer
        self.name = writer.name
        self.failed = False
        self.patience = patience
        self._is_hurried = False
        self._done = 0
        self._queue: deque[Item] = deque()
        self._room = threading.Semaphore(size)
        self._wake = threading.Event()
        self._report = report
        # With the context of the caller: what the thread logs belongs to the run that starts it. A
        # daemon: a writer that hangs must not keep the process alive.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._work,),
            name=f"write-{self.name}",
            daemon=True,
        )
        self._thread.start()

    def write(self, records: Iterable[Record]) -> None:
        """Put records into the queue, and return at once."""
        listed = list(records)
        if listed and not self.failed:
            self._enqueue(listed)

    def write_now(self, records: Iterable[Record]) -> None:
        """Write in the caller's thread, after everything in the queue.

        For records that may still change, such as a `Graph` with its model.
        """
        self.flush()
        self._attempt(lambda: self.writer.write(records))

    def flush(self) -> None:
        """Wait until everything in the queue is written."""
        reached = threading.Event()
        if not self.failed and self._enqueue(reached):
            self._wait_for(reached.wait)

    def hurry(self) -> None:
        """Wait only briefly from now on, because the process was asked to end."""
        self._is_hurried, self.patience = True, min(self.patience, HURRIED_PATIENCE)

    def stop(self) -> bool:
        """Write everything in the queue and end the thread; return whether it has ended."""
        if self._enqueue(None):
            if self.failed:  # It writes nothing more. If it hangs, we have waited for it already.
                self._thread.join(min(self.patience, 1.0))
            else:
                self._wait_for(self._joins_within)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Write everything in the queue, end the thread and close the writer."""
        if not self.stop():
            return  # The thread still uses the writer.
        # In a thread, since a service may hang here too. Also after a failure: a backend may hold
        # a connection or a process, which has to be released.
        closing = threading.Thread(
            target=copy_context().run,
            args=(partial(self._attempt, self.writer.close, always=True),),
            name=f"close-{self.name}",
            daemon=True,
        )
        closing.start()
        closing.join(self.patience)
        if closing.is_alive():
            self._fail(TimeoutError(f"closing it took more than {self.patience:g} seconds"))

    def _wait_for(self, comes_within: Callable[[float], bool]) -> None:
        """Wait for something as long as the writer makes progress, and give up otherwise."""
        # A slow writer with a long queue is not stuck: each write that is done grants more time.
        done = -1
        while not self.failed and done != self._done:
            done = self._done
            if comes_within(self.patience):
                return
            if self._is_hurried:
                break
        self._give_up()

    def _joins_within(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _enqueue(self, item: Item) -> bool:
        # Full: wake the thread at once instead of waiting for its next look.
        if not self._room.acquire(blocking=False):
            self._wake.set()
            if not self._room.acquire(timeout=self.patience):
                self._give_up()
                return False
        self._queue.append(item)
        # Only if a caller waits. Waking the thread for every record would cost the caller far more
        # than the writing itself: the two threads would take turns at the interpreter's lock.
        if not isinstance(item, list):
            self._wake.set()
        return True

    def _work(self) -> None:
        while True:
            self._wake.wait(PAUSE)
            self._wake.clear()
            while self._queue:
                item = self._queue.popleft()
                self._room.release()
                if item is None:
                    return
                if isinstance(item, threading.Event):
                    self._attempt(self.writer.flush)
                    item.set()
                else:
                    self._attempt(partial(self.writer.write, item))
                self._done += 1

    def _attempt(self, action: Callable[[], None], *, always: bool = False) -> None:
        if self.failed and not always:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 - reported, and the writer is switched off
            self._fail(error)

    def _give_up(self) -> None:
        what = "it took more than" if self._is_hurried else "it made no progress for"
        self._fail(TimeoutError(f"{what} {self.patience:g} seconds"))

    def _fail(self, error: BaseException) -> None:
        if not self.failed:
            self.failed = True
            self._report(self.writer, error)


_log = logging.getLogger("hookloop")

MAX_EARLY = 256
"""How many records wait for the first writer; a run without one must not collect them forever."""


class Outbox:
    """Passes records on to every open writer.

    Records that come while a run is being set up, before any writer is open, wait for the writers.

    >>> outbox = Outbox()
    >>> outbox.is_empty
    True
    """

    def __init__(self) -> None:
        self._writers: list[Writer] = []
        self._finishers: list[Callable[[], None]] = []
        self._early: list[Record] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is no writer and no record waits."""
        return not (self._writers or self._early)

    def put(self, record: Record) -> None:
        """Send a record to every open writer."""
        for writer in self._writers:
            writer.write([record])
        if not self._writers and len(self._early) < MAX_EARLY:
            self._early.append(record)

    def open(self, writer: Writer, end: Callable[[], None] | None = None) -> None:
        """Add a writer, and send it the records that waited.

        Args:
            writer: The writer.
            end: Called by `finish`, after the last hook of the run: writes what is left and closes
                the writer.
        """
        # They are kept: the other writers of the run open later, and need them too.
        writer.write(self._early)
        self._writers.append(writer)
        if end is not None:
            self._finishers.append(end)

    def finish(self) -> None:
        """Call the ``end`` of each writer; one that fails is reported."""
        # Each is called once, even if this is called again.
        ends, self._finishers = self._finishers, []
        for end in ends:
            try:
                end()
            except Exception as error:  # noqa: BLE001 - reported, and the other writers still end
                _log.warning("A writer failed at the end: %s: %s", type(error).__name__, error)

    def close(self, writer: Writer) -> None:
        """Remove a writer."""
        self._writers = [other for other in self._writers if other is not writer]
        # A later training or test of this run must not get them again.
        if not self._writers:
            self._early = []
