"""Saving beside the training: in order, one checkpoint at a time, and no fault that ends the run.

A write that fails (a full disk, a lost directory) is said once and tried again, until it succeeds,
a newer checkpoint takes its place, or the run ends; the end waits for what can be saved.

A thread writes, not a process: torch and the system do nearly all of it without the interpreter's
lock. While 600 MB are written, a training of small iterations (160 us) is slower by 5 % with a
thread and by 2 % with a process (bench/saves.py --writer), which would need all buffers in shared
memory, and care about its own end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from time import monotonic

from hookloop.checkpoint.index import Saved
from hookloop.errors import CheckpointError

_log = logging.getLogger("hookloop")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LAST_TRIES = 3


@dataclass(eq=False)
class Job:
    """Something to do in a store.

    Attributes:
        label: What messages call it.
        place: The store; the jobs of one are done in the order given.
        work: Does it and returns what was saved, if anything; after a failure it is called again.
        is_write: Whether it writes the snapshot, whose memory the next one needs.
        needs: Label of the job without which it is pointless.
        lost: Called by whoever asks for news if it was given up.
        tries: How often it failed.
        due: When it may be tried again.
    """

    label: str
    place: str
    work: Callable[[], Saved | None]
    is_write: bool = False
    needs: str | None = None
    lost: Callable[[], None] | None = None
    tries: int = 0
    due: float = 0.0


class BackgroundSaver:
    """Does jobs in a thread; a store that fails does not hold up another.

    Args:
        announce: Called in the thread when something was saved, to wake whoever wants to know.
    """

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # All below is guarded by the condition. A job stays in the list until it is done.
        self._jobs: list[Job] = []
        self._finished: list[Saved] = []
        self._lost: list[Job] = []
        self._problems: dict[str, str] = {}
        self._needs_room = False
        self._closing = False

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint of some place is not saved, or None if all are."""
        with self._changed:
            return " ".join(self._problems.values()) or None

    def wait_for_room(self) -> None:
        """Wait until no checkpoint is being written, so that its memory can be used again.

        One that failed and waits to be tried again is given up: a newer one is to come.
        """
        with self._changed:
            self._needs_room = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(job.is_write for job in self._jobs))
            self._needs_room = False
        self._tell_losers()

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
            if self._thread is None:
                self._closing = False
                # What the thread reports belongs to the run that starts it.
                self._thread = threading.Thread(
                    target=copy_context().run,
                    args=(self._work,),
                    name="hookloop-save",
                    daemon=True,
                )
                self._thread.start()

    def awaits(self, label: str) -> bool:
        """Tell whether a job of this label is yet to be done."""
        with self._changed:
            return any(job.label == label for job in self._jobs)

    def news(self) -> list[Saved]:
        """Return what became durable since the last call; tell the losers that they lost."""
        self._tell_losers()
        with self._changed:
            finished, self._finished = self._finished, []
        return finished

    def close(self) -> None:
        """Wait until everything is durable, or has failed for good; each gets a last try."""
        if self._thread is None:
            return
        with self._changed:
            self._closing = True
            for job in self._jobs:
                job.tries, job.due = min(job.tries, LAST_TRIES - 1), 0.0
            self._changed.notify_all()
        self._thread.join()
        self._thread = None

    def _tell_losers(self) -> None:
        with self._changed:
            lost, self._lost = self._lost, []
        for job in lost:
            if job.lost is not None:
                job.lost()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                saved = job.work()
            except Exception as error:  # noqa: BLE001 - whatever a store raises must not end this
                self._fail(job, error)
            else:
                self._finish(job, saved)

    def _next(self) -> Job | None:
        """Wait for a job that can be done now; None when there will be none any more."""
        with self._changed:
            while True:
                self._give_up_hopeless()
                if self._closing and not self._jobs:
                    return None
                heads: dict[str, Job] = {}
                for job in self._jobs:
                    heads.setdefault(job.place, job)
                first = min(heads.values(), key=lambda job: job.due, default=None)
                wait = first.due - monotonic() if first is not None else None
                if wait is not None and wait <= 0:
                    return first
                self._changed.wait(wait)

    def _give_up_hopeless(self) -> None:
        for job in list(self._jobs):
            over = self._closing and job.tries >= LAST_TRIES
            if over or (self._needs_room and job.tries):
                self._give_up(job)

    def _give_up(self, job: Job) -> None:
        for other in [one for one in self._jobs if one is job or one.needs == job.label]:
            self._jobs.remove(other)
            self._lost.append(other)
            _log.info("'%s' is given up.", other.label)
        self._changed.notify_all()
        self._announce()

    def _fail(self, job: Job, error: Exception) -> None:
        problem = f"'{job.label}' could not be saved: {error}"
        with self._changed:
            if job.place not in self._problems:  # Once, however long the fault lasts.
                _log.warning(
                    "%s. Training goes on with the last good checkpoint; saving is tried again.",
                    problem.removesuffix("."),
                )
            self._problems[job.place] = problem
            job.tries += 1
            longest = FIRST_PAUSE if self._closing else LONGEST_PAUSE
            job.due = monotonic() + min(FIRST_PAUSE * 2 ** min(job.tries, 10), longest)
            if isinstance(error, CheckpointError):  # Trying again would not help.
                self._give_up(job)

    def _finish(self, job: Job, saved: Saved | None) -> None:
        with self._changed:
            self._jobs.remove(job)
            if saved is not None:
                self._finished.append(saved)
            if self._problems.pop(job.place, None) is not None:
                _log.warning("'%s' is saved: the fault is over.", job.label)
            self._changed.notify_all()
        self._announce()
