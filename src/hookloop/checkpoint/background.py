"""Saving beside the training: one job at a time, in order, and no fault that ends the run.

A write that fails (a full disk, a lost directory) is said once and tried again, until it succeeds,
a newer checkpoint takes its place, or the run ends; the end waits for what can be saved.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hookloop.checkpoint.store import Saved
from hookloop.errors import CheckpointError

_log = logging.getLogger("hookloop")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LAST_TRIES = 3


@dataclass
class Job:
    """Something to do in a store; it returns what was saved, if anything."""

    label: str
    work: Callable[[], Saved | None]
    is_write: bool = False


class BackgroundSaver:
    """Does jobs in a thread, in the order given, with at most one checkpoint under way.

    Args:
        announce: Called in the thread when something was saved, to wake whoever wants to know.
    """

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._retrying = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._finished: deque[Saved] = deque()
        self.problem: str | None = None
        """Why the newest checkpoint is not saved, or None if it is."""
        self.problems = 0

    def wait_for_room(self) -> None:
        """Wait until no checkpoint is being written, so that its memory can be used again.

        One that failed and waits to be tried again is given up: a newer one is to come.
        """
        with self._changed:
            if self._retrying:
                self._jobs.clear()
                self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy)

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                self._closing = False
                self._thread = threading.Thread(
                    target=self._work, name="hookloop-save", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def finished(self) -> list[Saved]:
        """Return what became durable since the last call."""
        done = []
        while self._finished:
            done.append(self._finished.popleft())
        return done

    def close(self) -> None:
        """Wait until everything is durable, or has failed for good."""
        thread = self._thread
        if thread is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        thread.join()
        self._thread = None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs:
                    return
                job = self._jobs[0]
                self._busy = True
            done = self._attempt(job)
            with self._changed:
                if self._jobs and self._jobs[0] is job:
                    self._jobs.popleft()
                self._busy = False
                self._changed.notify_all()
            if done:
                self._announce()

    def _attempt(self, job: Job) -> bool:
        """Do a job, if need be several times; return whether something was saved."""
        pause, tries = FIRST_PAUSE, 0
        while True:
            try:
                saved = job.work()
            except (OSError, CheckpointError, RuntimeError) as error:
                tries += 1
                self._complain(job, error)
                if not self._pause(job, pause, tries):
                    return False
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                if job.is_write and self.problem is not None:
                    _log.warning("'%s' is saved: the fault is over.", job.label)
                    self.problem = None
                if saved is not None:
                    self._finished.append(saved)
                return saved is not None

    def _complain(self, job: Job, error: Exception) -> None:
        self.problems += 1
        if self.problem is None:  # Once, however long the fault lasts.
            _log.warning(
                "'%s' could not be saved: %s. Training goes on with the last good checkpoint; "
                "saving is tried again.",
                job.label,
                error,
            )
        self.problem = f"'{job.label}' could not be saved: {error}"

    def _pause(self, job: Job, seconds: float, tries: int) -> bool:
        """Wait before the next try; return False if the job is not wanted any more."""
        with self._changed:
            if not job.is_write or (self._closing and tries >= LAST_TRIES):
                self._jobs.clear()
                return False
            self._busy, self._retrying = False, True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._closing or not self._jobs or self._jobs[0] is not job,
                timeout=seconds if not self._closing else min(seconds, FIRST_PAUSE),
            )
            self._retrying = False
            wanted = bool(self._jobs) and self._jobs[0] is job
            self._busy = wanted
            return wanted
