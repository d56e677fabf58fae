"""Save in the background: one checkpoint at a time per store, and no failure ends the run.

A write that fails (a full disk, a lost directory) is reported once and tried again until it
succeeds, a newer checkpoint replaces it, or the run ends; the end waits for what can be saved.
Training waits for a store that does not answer as long as its jobs allow, and no longer.

Threads write, not processes: torch and the system do nearly all of it without the interpreter's
lock. While 600 MB are written, a training of small iterations (160 us) is slower by 5 % with a
thread and by 2 % with a process (bench/saves.py --writer). A process would need all buffers in
shared memory, and code to make sure that it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from hookloop.checkpoint.saving.store_queue import MAX_WAIT, Job, StoreQueue
from hookloop.checkpoint.store.index import Saved

__all__ = ["MAX_WAIT", "BackgroundSaver", "Job"]


class BackgroundSaver:
    """Runs jobs in threads, one for each store.

    Args:
        announce: Called in a thread when a job has finished or was given up.
    """

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        # One condition for all queues, because training waits for all of them at once.
        self._changed = threading.Condition()
        self._queues: dict[str, StoreQueue] = {}
        self._is_closing = False

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint of some store is not saved, or None if all are."""
        with self._changed:
            queues = self._queues.values()
            problems = [queue.problem for queue in queues if queue.problem is not None]
            return " ".join(problems) or None

    def wait_until_free(self, memory: object) -> bool:
        """Wait until no checkpoint is being written, so that its memory can be used again.

        A checkpoint that failed and waits to be tried again is given up, since a newer one is
        coming. So is one that waits behind another that takes too long.

        Returns:
            Whether the memory can be used; it cannot while a slow store still reads it.
        """
        queues = self._queues.values()
        with self._changed:
            for queue in queues:
                queue.reset_waited()
            while patience := {q: seconds for q in queues if (seconds := q.patience()) > 0}:
                began = monotonic()
                # A job that finishes or fails wakes this, and the patience is asked for again.
                self._changed.wait(min(patience.values()))
                for queue in patience:
                    queue.add_waited(monotonic() - began)
            for queue in queues:
                queue.drop_replaced()
            is_free = not any(queue.is_writing(memory) for queue in queues)
        self._report_lost()
        return is_free

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._is_closing = False
            if job.location not in self._queues:
                self._queues[job.location] = StoreQueue(self._changed, self._announce)
            self._queues[job.location].add(job)
            self._changed.notify_all()

    def has_job(self, label: str) -> bool:
        """Return whether a job of this label is still to be done."""
        with self._changed:
            return any(job.label == label for queue in self._queues.values() for job in queue.jobs)

    def take_finished(self) -> list[Saved]:
        """Return what became durable since the last call; report jobs that were given up."""
        self._report_lost()
        finished: list[Saved] = []
        with self._changed:
            for queue in self._queues.values():
                finished += queue.finished
                queue.finished = []
        return finished

    def close(self) -> None:
        """Wait until everything is durable, has failed for good, or has taken too long.

        If the wait was interrupted by an exception, the next call does not wait again.
        """
        with self._changed:
            now = monotonic()
            deadlines = {queue: now + queue.begin_closing() for queue in self._queues.values()}
            self._changed.notify_all()
            # The flag stays set if the wait below is left by an exception, such as Ctrl-C.
            was_interrupted, self._is_closing = self._is_closing, True
            while not was_interrupted and (left := self._time_left(deadlines)):
                self._changed.wait(min(left))
            self._is_closing = False
            for queue in deadlines:
                queue.abandon(was_interrupted=was_interrupted)
            done = [queue for queue in deadlines if not queue.jobs]
        # Outside of the condition, which the threads need to end. A queue that still has a job is
        # stuck in its store and cannot be joined.
        for queue in done:
            queue.join()

    def _time_left(self, deadlines: dict[StoreQueue, float]) -> list[float]:
        now = monotonic()
        return [end - now for queue, end in deadlines.items() if queue.jobs and end > now]

    def _report_lost(self) -> None:
        """Call back for the jobs that were given up, in the thread that asks."""
        lost: list[Job] = []
        with self._changed:
            for queue in self._queues.values():
                lost += queue.lost
                queue.lost = []
        for job in lost:
            if job.on_lost is not None:
                job.on_lost()
