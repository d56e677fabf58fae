"""The jobs of one store: done in order, in a thread of their own, tried again when they fail.

A store that fails or does not answer delays no other store.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from time import monotonic

from hookloop.checkpoint.store.index import Saved
from hookloop.errors import CheckpointError

_log = logging.getLogger("hookloop")

MAX_WAIT = 30.0
"""Seconds that training, and its end, wait for a store, unless the user sets another limit."""

SLOWEST_RATE = 10e6
"""Bytes per second of a slow store: a large checkpoint gets that much more time."""

GRACE = 1.0
"""Seconds in total that training waits for a store from its first failure until it recovers."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LAST_TRIES = 3


@dataclass(eq=False)
class Job:
    """A task for a store.

    Attributes:
        label: Its name in messages.
        location: The store; the jobs of one store are done in the order given.
        work: Does it and returns what was saved, if anything; after a failure it is called again.
        memory: The snapshot that it writes, which must not change meanwhile; None if it has none.
        nbytes: How much it writes.
        max_wait: Seconds to wait for it, in addition to those for its size; None for those of the
            job before.
        needs: Label of a job; if that one is given up, so is this one.
        on_lost: Called if it was given up, by the thread that asks for results.
        tries: How often it failed.
        due: When it may be tried again.
        began: When it was started.
    """

    label: str
    location: str
    work: Callable[[], Saved | None]
    memory: object | None = None
    nbytes: int = 0
    max_wait: float | None = None
    needs: str | None = None
    on_lost: Callable[[], None] | None = None
    tries: int = 0
    due: float = 0.0
    began: float = 0.0


class StoreQueue:
    """The jobs of one store.

    All attributes are guarded by the condition, which all queues share: except for `join`, the
    public methods are called while it is held.

    Args:
        changed: Notified whenever a job is done, has failed or was given up.
        announce: Called in the thread when a job is done or was given up.
    """

    def __init__(self, changed: threading.Condition, announce: Callable[[], None]) -> None:
        self.jobs: list[Job] = []
        """Jobs to do; the running one comes first until it is done."""
        self.running: Job | None = None
        self.finished: list[Saved] = []
        self.lost: list[Job] = []
        self.problem: str | None = None
        """Why the newest checkpoint is not saved."""
        self._changed = changed
        self._announce = announce
        self._thread: threading.Thread | None = None
        self._max_wait = MAX_WAIT
        self._slowest = 0.0
        self._grace = GRACE
        self._waited = 0.0
        self._is_late = False
        self._is_closing = False

    def add(self, job: Job) -> None:
        """Queue a job."""
        self._is_closing = False
        if job.max_wait is not None:
            self._max_wait = job.max_wait
        if job.memory is not None and self.jobs and self.jobs[0] is not self.running:
            # The first job may be pausing after a failure. The store may have recovered, and the
            # new checkpoint must not wait for the end of the pause.
            self.jobs[0].due = 0.0
        self.jobs.append(job)
        if self._thread is None:
            # In a copy of the context, so that log messages reach the log of this run. A daemon,
            # because a call that hangs in a store must not keep the process alive.
            self._thread = threading.Thread(
                target=copy_context().run, args=(self._work,), name="hookloop-save", daemon=True
            )
            self._thread.start()

    def patience(self) -> float:
        """Return for how many seconds a new checkpoint may still wait for the one before.

        It is zero for a store that took too long the last time, and short for one that fails.
        """
        if self._is_late or not self._writes():
            return 0.0
        if self.problem is not None:
            is_trying = self.running is not None or self.jobs[0].due <= monotonic()
            return self._grace if is_trying else 0.0
        began = self.running.began if self.running is not None else monotonic()
        return began + self._limit(self._writes()[0]) - monotonic()

    def reset_waited(self) -> None:
        """Start counting again: another checkpoint begins to wait."""
        self._waited = 0.0

    def add_waited(self, seconds: float) -> None:
        """Count the time that a new checkpoint has waited for this store."""
        self._waited += seconds
        if self.problem is not None:
            self._grace -= seconds

    def drop_replaced(self) -> None:
        """Give up what a newer checkpoint replaces; the running job continues."""
        if self.running is not None and self._writes():
            if self.problem is None and not self._is_late:
                self._report_late(self.running, "Training continues without waiting for it.")
            self._is_late = True
        for job in self._writes():
            if job is not self.running:
                self._give_up(job)

    def is_writing(self, memory: object) -> bool:
        """Return whether a snapshot is being written."""
        return self.running is not None and self.running.memory is memory

    def begin_closing(self) -> float:
        """Give each job its last tries; return for how many seconds to wait for all of them."""
        self._is_closing = True
        for job in self.jobs:
            # At least one more try, at once: the store may have recovered since the last one.
            job.tries, job.due = min(job.tries, LAST_TRIES - 1), 0.0
        size = sum(job.nbytes for job in self.jobs) / SLOWEST_RATE
        # The last checkpoint may already have waited for this store, which still does not answer.
        # That time counts, or the end would wait for the same call twice.
        waited = self._waited if self._is_late else 0.0
        longest = self._max_wait + size + self._slowest * (len(self._writes()) + 1)
        return max(longest - waited, 0.0)

    def abandon(self, *, was_interrupted: bool) -> None:
        """Give up what is left; a call into the store that does not return is left alone.

        Args:
            was_interrupted: Whether the user interrupted the wait for it.
        """
        for job in self.jobs[:]:
            if job is self.running:
                job.tries = LAST_TRIES  # If the call fails after all, it is not tried again.
                self._report_late(job, "The run ends without it.", was_interrupted=was_interrupted)
            elif job in self.jobs:
                self._give_up(job)

    def join(self) -> None:
        """Wait for the end of the thread, which has nothing more to do."""
        if self._thread is not None:
            self._thread.join()

    def _writes(self) -> list[Job]:
        return [job for job in self.jobs if job.memory is not None]

    def _limit(self, job: Job) -> float:
        return self._max_wait + job.nbytes / SLOWEST_RATE

    def _report_late(self, job: Job, consequence: str, *, was_interrupted: bool = False) -> None:
        if self.problem is None:  # Otherwise it has failed before, which tells the user more.
            why = f"no answer from its store for {monotonic() - job.began:.2g} s"
            if was_interrupted:
                why = "the wait for its store was interrupted"
            self.problem = f"'{job.label}' could not be saved: {why}"
            _log.warning("%s. %s", self.problem, consequence)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                saved = job.work()
            except Exception as error:  # noqa: BLE001 - no error of a store may end the thread
                self._fail(job, error)
            else:
                self._finish(job, saved)

    def _next(self) -> Job | None:
        """Wait for a job that can be done now; return None when there are no more."""
        with self._changed:
            while True:
                job = self.jobs[0] if self.jobs else None
                if job is not None and self._is_closing and job.tries >= LAST_TRIES:
                    self._give_up(job)
                    continue
                if job is None and self._is_closing:
                    self._thread = None  # While the condition is held: `add` starts a new one.
                    return None
                wait = job.due - monotonic() if job is not None else None
                if wait is not None and wait <= 0:
                    assert job is not None
                    self.running, job.began = job, monotonic()
                    return job
                self._changed.wait(wait)

    def _give_up(self, job: Job) -> None:
        for lost in [other for other in self.jobs if other is job or other.needs == job.label]:
            self.jobs.remove(lost)
            self.lost.append(lost)
            _log.info("'%s' is given up.", lost.label)
        self._changed.notify_all()
        self._announce()

    def _fail(self, job: Job, error: Exception) -> None:
        problem = f"'{job.label}' could not be saved: {error}"
        with self._changed:
            self.running = None
            if self.problem is None:  # Report it once, however long the problem lasts.
                _log.warning(
                    "%s. Training continues; the last good checkpoint stays, and saving is tried "
                    "again.",
                    problem.removesuffix("."),
                )
            self.problem = problem
            job.tries += 1
            longest = FIRST_PAUSE if self._is_closing else LONGEST_PAUSE
            job.due = monotonic() + min(FIRST_PAUSE * 2 ** min(job.tries, 10), longest)
            if isinstance(error, CheckpointError):  # It would fail again in the same way.
                self._give_up(job)
            self._changed.notify_all()

    def _finish(self, job: Job, saved: Saved | None) -> None:
        with self._changed:
            self.running = None
            self.jobs.remove(job)
            if job.memory is not None:
                seconds = monotonic() - job.began
                self._slowest = max(self._slowest, seconds)
                self._is_late = seconds > self._limit(job)
            if saved is not None:
                self.finished.append(saved)
            if self.problem is not None:
                _log.warning("'%s' is saved: the problem is over.", job.label)
            # A store that works again deserves the full patience at its next failure.
            self.problem, self._grace = None, GRACE
            self._changed.notify_all()
        self._announce()
