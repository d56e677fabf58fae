"""Saving beside the training: one checkpoint at a time per store, and no failure that ends the run.

A write that fails (a full disk, a lost directory) is reported once and tried again, until it
succeeds, a newer checkpoint takes its place, or the run ends; the end waits for what can be saved.
A store that does not answer is waited for as long as its jobs allow, and no longer.

Threads write, not processes: torch and the system do nearly all of it without the interpreter's
lock. While 600 MB are written, a training of small iterations (160 us) is slower by 5 % with a
thread and by 2 % with a process (bench/saves.py --writer), which would need all buffers in shared
memory, and care about its own end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from hookloop.checkpoint.index import Saved
from hookloop.checkpoint.lane import MAX_WAIT, Job, Lane

__all__ = ["MAX_WAIT", "BackgroundSaver", "Job"]


class BackgroundSaver:
    """Does jobs in threads, one for each store.

    Args:
        announce: Called in a thread when something was saved, to wake whoever wants to know.
    """

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._changed = threading.Condition()
        self._lanes: dict[str, Lane] = {}
        self._in_a_hurry = False

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint of some place is not saved, or None if all are."""
        with self._changed:
            problems = [lane.problem for lane in self._lanes.values() if lane.problem is not None]
            return " ".join(problems) or None

    def wait_for_room(self, memory: object) -> bool:
        """Wait until no checkpoint is being written, so that memory can be used again.

        One that failed and waits to be tried again is given up: a newer one is to come. So is one
        that waits behind another which takes too long.

        Returns:
            Whether the memory can be used; it cannot while a slow store still reads it.
        """
        lanes = self._lanes.values()
        with self._changed:
            for lane in lanes:
                lane.begin_waiting()
            while patience := {one: left for one in lanes if (left := one.patience()) > 0}:
                began = monotonic()
                self._changed.wait(min(patience.values()))
                for lane in patience:
                    lane.was_waited_for(monotonic() - began)
            for lane in lanes:
                lane.make_room()
            is_free = not any(lane.uses(memory) for lane in lanes)
        self._tell_losers()
        return is_free

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._in_a_hurry = False
            if job.place not in self._lanes:
                self._lanes[job.place] = Lane(job.place, self._changed, self._announce)
            self._lanes[job.place].add(job)
            self._changed.notify_all()

    def awaits(self, label: str) -> bool:
        """Tell whether a job of this label is yet to be done."""
        with self._changed:
            return any(job.label == label for lane in self._lanes.values() for job in lane.jobs)

    def news(self) -> list[Saved]:
        """Return what became durable since the last call; tell the losers that they lost."""
        self._tell_losers()
        finished: list[Saved] = []
        with self._changed:
            for lane in self._lanes.values():
                finished += lane.finished
                lane.finished = []
        return finished

    def close(self) -> None:
        """Wait until everything is durable, has failed for good, or has taken too long.

        Whoever interrupts the wait does not want to wait again.
        """
        with self._changed:
            now = monotonic()
            until = {one: now + one.begin_closing() for one in self._lanes.values()}
            self._changed.notify_all()
            hurried, self._in_a_hurry = self._in_a_hurry, True
            while not hurried and (left := self._time_left(until)):
                self._changed.wait(min(left))
            self._in_a_hurry = False
            for lane in until:
                lane.abandon(is_hurried=hurried)
            done = [lane for lane in until if not lane.jobs]
        for lane in done:
            lane.join()

    def _time_left(self, until: dict[Lane, float]) -> list[float]:
        now = monotonic()
        return [end - now for lane, end in until.items() if lane.jobs and end > now]

    def _tell_losers(self) -> None:
        lost: list[Job] = []
        with self._changed:
            for lane in self._lanes.values():
                lost += lane.lost
                lane.lost = []
        for job in lost:
            if job.lost is not None:
                job.lost()
