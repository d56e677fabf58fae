"""A writer that lets another one do its work in a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial

from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Record

Item = list[Record] | threading.Event | None
"""What waits: records, a mark that tells how far the thread is, or the end."""

PATIENCE = 60.0
"""Seconds that a run waits for a writer that does not move, before it goes on without it."""

HURRIED = 10.0
"""Seconds that a run which a signal has ended waits for a writer, whether it moves or not."""

PAUSE = 0.2
"""Seconds for which records gather before the thread takes them."""


class Background(Writer):
    """Writes in a thread of its own, in order, and never raises.

    The thread looks after a pause whether records have come; to wake it for each would cost the
    caller far more than writing, because the two change places at the interpreter's lock. The queue
    is bounded: when it is full, the caller waits, so that nothing is lost and memory does not grow.
    A writer that fails, or does not move for a minute, is reported once and left out from then on.
    The thread ends with `close`. Opening the writer stays with the caller; closing it, in a thread
    again, is waited for as long as a write.

    Args:
        writer: Who does the work.
        size: How many calls may wait.
        patience: Seconds to wait for a writer that does not move.
        report: Called, once, if the writer fails.
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
        # What the thread reports belongs to the run that starts it.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._work,),
            name=f"write-{self.name}",
            daemon=True,
        )
        self._thread.start()

    def write(self, records: Iterable[Record]) -> None:
        """Hand records over, and return at once."""
        listed = list(records)
        if listed and not self.failed:
            self._hand_over(listed)

    def write_now(self, records: Iterable[Record]) -> None:
        """Write in the caller's thread, after all that waits: for records that are still alive."""
        self.flush()
        self._attempt(lambda: self.writer.write(records))

    def flush(self) -> None:
        """Wait until everything handed over so far is written."""
        reached = threading.Event()
        if not self.failed and self._hand_over(reached):
            self._wait_for(reached.wait)

    def hurry(self) -> None:
        """Wait little from now on: the run was asked to end."""
        self._is_hurried, self.patience = True, min(self.patience, HURRIED)

    def stop(self) -> bool:
        """Write what waits and end the thread; tell whether that succeeded."""
        if self._hand_over(None):
            if self.failed:  # It writes nothing more; if it hangs, it was waited for already.
                self._thread.join(min(self.patience, 1.0))
            else:
                self._wait_for(self._ends_within)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Write what waits, end the thread and close the writer."""
        if not self.stop():
            return
        # Also after a failure, which was reported: a backend may hold more than files.
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
        """Wait for something as long as the writer moves; give it up otherwise."""
        done = -1
        while not self.failed and done != self._done:
            done = self._done
            if comes_within(self.patience):
                return
            if self._is_hurried:
                break
        self._give_up()

    def _ends_within(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _hand_over(self, item: Item) -> bool:
        if not self._room.acquire(blocking=False):
            self._wake.set()
            if not self._room.acquire(timeout=self.patience):
                self._give_up()
                return False
        self._queue.append(item)
        if not isinstance(item, list):  # Somebody waits for this.
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
        except Exception as error:  # noqa: BLE001 - reported, and the writer is left out
            self._fail(error)

    def _give_up(self) -> None:
        what = "it took more than" if self._is_hurried else "nothing moved for"
        self._fail(TimeoutError(f"{what} {self.patience:g} seconds"))

    def _fail(self, error: BaseException) -> None:
        if not self.failed:
            self.failed = True
            self._report(self.writer, error)
