"""Write in the background: one task at a time per store, and no failure ends the run.

A task that fails (a full disk, a lost directory) is reported once and tried again until it
succeeds, a newer checkpoint replaces it, or the run ends; the end waits for what can be saved.
Training waits for a store that does not answer as long as its tasks allow, and no longer. A store
that fails or does not answer delays no other store.

Threads write, not processes: torch and the system do nearly all of it without the interpreter's
lock. While 600 MB are written, a training of small iterations (160 us) is slower by 5 % with a
thread and by 2 % with a process (bench/saves.py --writer). A process would need all buffers in
shared memory, and code to make sure that it ends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

from hookloop.checkpoint.saving.retention import Keep
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.store.index import Saved
from hookloop.errors import CheckpointError

if TYPE_CHECKING:
    from hookloop.checkpoint.shards.writing import Staged
    from hookloop.checkpoint.store.store import CheckpointStore

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
class Task:
    """One thing to do in a store.

    Attributes:
        what: Write a file, or this rank's part of a directory of shards; link an existing file to a
            second name; or note the results of a validation beside a checkpoint.
        saved: What the index is to list, with the place and the name; the results.
        store: The store at that place.
        home: The run's directory.
        content: What to write.
        snapshot: The memory that holds the content, which must not change meanwhile.
        nbytes: How much it writes.
        source: The file to link.
        keep: What its owner keeps from now on.
        order: Its place among the checkpoints that `last_checkpoint` may name; None if it may not.
        max_wait: Seconds to wait for it, in addition to those for its size; None for those of the
            task before.
        on_lost: Called if it was given up, by the thread that asks for results.
        is_written: Whether an earlier attempt got as far as the index.
        tries: How often it failed.
        due: When it may be tried again.
        began: When it was started.
    """

    what: Literal["write", "shards", "link", "results"]
    saved: Saved
    store: CheckpointStore
    home: Path = Path()
    content: Mapping[str, object] | Staged | None = None
    snapshot: Snapshot | None = None
    nbytes: int = 0
    source: str | None = None
    keep: Keep | None = None
    order: int | None = None
    max_wait: float | None = None
    on_lost: Callable[[], None] | None = None
    is_written: bool = False
    tries: int = 0
    due: float = 0.0
    began: float = 0.0

    @property
    def label(self) -> str:
        """Its name in messages."""
        label = f"{self.saved.location}/{self.saved.name}"
        return label if self.what != "results" else f"{label} (metrics)"

    @property
    def needs(self) -> str | None:
        """Label of the task without which this one cannot be done, if that is not done yet."""
        name = self.saved.name if self.what == "results" else self.source
        return name and f"{self.saved.location}/{name}"


class Writer:
    """Does tasks in threads, one for each store, and tries again what failed.

    Args:
        carry_out: Does a task, in a thread, and returns what is durable now, if anything.
        announce: Called in a thread when a task is done or was given up.
    """

    def __init__(
        self,
        carry_out: Callable[[Task], Saved | None],
        announce: Callable[[], None] = lambda: None,
    ) -> None:
        self._carry_out = carry_out
        self._announce = announce
        # One condition for all stores, because training waits for all of them at once.
        self._changed = threading.Condition()
        self._queues: dict[str, _Queue] = {}
        self._is_closing = False

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint of some store is not saved, or None if all are."""
        with self._changed:
            queues = self._queues.values()
            problems = [queue.problem for queue in queues if queue.problem is not None]
            return " ".join(problems) or None

    def submit(self, task: Task) -> None:
        """Queue a task; those of a store are done in the order given."""
        with self._changed:
            self._is_closing = False
            place = task.saved.location
            if place not in self._queues:
                self._queues[place] = _Queue(self._changed, self._carry_out, self._announce)
            self._queues[place].add(task)
            self._changed.notify_all()

    def has(self, label: str) -> bool:
        """Return whether a task of this label is still to be done."""
        with self._changed:
            return any(one.label == label for queue in self._queues.values() for one in queue.tasks)

    def wait_until_free(self, snapshot: Snapshot) -> bool:
        """Wait until no checkpoint is being written, so that its memory can be used again.

        A checkpoint that failed and waits to be tried again is given up, since a newer one is
        coming. So is one that waits behind another that takes too long.

        Returns:
            Whether the memory can be used; it cannot while a slow store still reads it.
        """
        queues = self._queues.values()
        with self._changed:
            for queue in queues:
                queue.waited = 0.0  # Another checkpoint begins to wait.
            while patience := {q: seconds for q in queues if (seconds := q.patience()) > 0}:
                began = monotonic()
                # A task that is done or fails wakes this, and the patience is asked for again.
                self._changed.wait(min(patience.values()))
                for queue in patience:
                    queue.add_waited(monotonic() - began)
            for queue in queues:
                queue.drop_replaced()
            running = [queue.running for queue in queues]
            is_free = not any(one is not None and one.snapshot is snapshot for one in running)
        self._report_lost()
        return is_free

    def take_finished(self) -> list[Saved]:
        """Return what became durable since the last call; report tasks that were given up."""
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
            while not was_interrupted and (left := _time_left(deadlines)):
                self._changed.wait(min(left))
            self._is_closing = False
            for queue in deadlines:
                queue.abandon(was_interrupted=was_interrupted)
            threads = [queue.thread for queue in deadlines if not queue.tasks]
        # Outside of the condition, which the threads need to end. A queue that still has a task is
        # stuck in its store and cannot be joined.
        for thread in threads:
            if thread is not None:
                thread.join()

    def _report_lost(self) -> None:
        """Call back for the tasks that were given up, in the thread that asks."""
        lost: list[Task] = []
        with self._changed:
            for queue in self._queues.values():
                lost += queue.lost
                queue.lost = []
        for task in lost:
            if task.on_lost is not None:
                task.on_lost()


def _time_left(deadlines: Mapping[_Queue, float]) -> list[float]:
    now = monotonic()
    return [end - now for queue, end in deadlines.items() if queue.tasks and end > now]


class _Queue:
    """The tasks of one store, and the thread that does them.

    The condition guards all attributes: the writer holds it when it calls the public methods.
    """

    def __init__(
        self,
        changed: threading.Condition,
        carry_out: Callable[[Task], Saved | None],
        announce: Callable[[], None],
    ) -> None:
        self.tasks: list[Task] = []  # To do; the running one comes first until it is done.
        self.running: Task | None = None
        self.finished: list[Saved] = []
        self.lost: list[Task] = []
        self.problem: str | None = None  # Why the newest checkpoint is not saved.
        self.waited = 0.0  # How long the newest checkpoint has waited for this store.
        self.thread: threading.Thread | None = None
        self._changed = changed
        self._carry_out = carry_out
        self._announce = announce
        self._max_wait = MAX_WAIT
        self._slowest = 0.0
        self._grace = GRACE
        self._is_late = False
        self._is_closing = False

    def add(self, task: Task) -> None:
        """Queue a task."""
        self._is_closing = False
        if task.max_wait is not None:
            self._max_wait = task.max_wait
        if task.snapshot is not None and self.tasks and self.tasks[0] is not self.running:
            # The first task may be pausing after a failure. The store may have recovered, and the
            # new checkpoint must not wait for the end of the pause.
            self.tasks[0].due = 0.0
        self.tasks.append(task)
        if self.thread is None:
            # In a copy of the context, so that log messages reach the log of this run. A daemon,
            # because a call that hangs in a store must not keep the process alive.
            self.thread = threading.Thread(
                target=copy_context().run, args=(self._work,), name="hookloop-save", daemon=True
            )
            self.thread.start()

    def patience(self) -> float:
        """Return for how many seconds a new checkpoint may still wait for the one before.

        It is zero for a store that took too long the last time, and short for one that fails.
        """
        if self._is_late or not self._writes():
            return 0.0
        if self.problem is not None:
            is_trying = self.running is not None or self.tasks[0].due <= monotonic()
            return self._grace if is_trying else 0.0
        began = self.running.began if self.running is not None else monotonic()
        return began + self._limit(self._writes()[0]) - monotonic()

    def add_waited(self, seconds: float) -> None:
        """Count the time that a new checkpoint has waited for this store."""
        self.waited += seconds
        if self.problem is not None:
            self._grace -= seconds

    def drop_replaced(self) -> None:
        """Give up what a newer checkpoint replaces; the running task continues."""
        if self.running is not None and self._writes():
            if self.problem is None and not self._is_late:
                self._report_late(self.running, "Training continues without waiting for it.")
            self._is_late = True
        for task in self._writes():
            if task is not self.running:
                self._give_up(task)

    def begin_closing(self) -> float:
        """Give each task its last tries; return for how many seconds to wait for all of them."""
        self._is_closing = True
        for task in self.tasks:
            # At least one more try, at once: the store may have recovered since the last one.
            task.tries, task.due = min(task.tries, LAST_TRIES - 1), 0.0
        size = sum(task.nbytes for task in self.tasks) / SLOWEST_RATE
        # The last checkpoint may already have waited for this store, which still does not answer.
        # That time counts, or the end would wait for the same call twice.
        waited = self.waited if self._is_late else 0.0
        longest = self._max_wait + size + self._slowest * (len(self._writes()) + 1)
        return max(longest - waited, 0.0)

    def abandon(self, *, was_interrupted: bool) -> None:
        """Give up what is left; a call into the store that does not return is left alone.

        Args:
            was_interrupted: Whether the user interrupted the wait for it.
        """
        for task in self.tasks[:]:
            if task is self.running:
                task.tries = LAST_TRIES  # If the call fails after all, it is not tried again.
                self._report_late(task, "The run ends without it.", was_interrupted=was_interrupted)
            elif task in self.tasks:
                self._give_up(task)

    def _writes(self) -> list[Task]:
        return [task for task in self.tasks if task.snapshot is not None]

    def _limit(self, task: Task) -> float:
        return self._max_wait + task.nbytes / SLOWEST_RATE

    def _report_late(self, task: Task, consequence: str, *, was_interrupted: bool = False) -> None:
        if self.problem is None:  # Otherwise it has failed before, which tells the user more.
            why = f"no answer from its store for {monotonic() - task.began:.2g} s"
            if was_interrupted:
                why = "the wait for its store was interrupted"
            self.problem = f"'{task.label}' could not be saved: {why}"
            _log.warning("%s. %s", self.problem, consequence)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                saved = self._carry_out(task)
            except Exception as error:  # noqa: BLE001 - no error of a store may end the thread
                self._fail(task, error)
            else:
                self._finish(task, saved)

    def _next(self) -> Task | None:
        """Wait for a task that can be done now; return None when there are no more."""
        with self._changed:
            while True:
                task = self.tasks[0] if self.tasks else None
                if task is not None and self._is_closing and task.tries >= LAST_TRIES:
                    self._give_up(task)
                    continue
                if task is None and self._is_closing:
                    self.thread = None  # While the condition is held: `add` starts a new one.
                    return None
                wait = task.due - monotonic() if task is not None else None
                if wait is not None and wait <= 0:
                    assert task is not None
                    self.running, task.began = task, monotonic()
                    return task
                self._changed.wait(wait)

    def _give_up(self, task: Task) -> None:
        for lost in [one for one in self.tasks if one is task or one.needs == task.label]:
            self.tasks.remove(lost)
            self.lost.append(lost)
            _log.info("'%s' is given up.", lost.label)
        self._changed.notify_all()
        self._announce()

    def _fail(self, task: Task, error: Exception) -> None:
        problem = f"'{task.label}' could not be saved: {error}"
        with self._changed:
            self.running = None
            if self.problem is None:  # Report it once, however long the problem lasts.
                _log.warning(
                    "%s. Training continues; the last good checkpoint stays, and saving is tried "
                    "again.",
                    problem.removesuffix("."),
                )
            self.problem = problem
            task.tries += 1
            longest = FIRST_PAUSE if self._is_closing else LONGEST_PAUSE
            task.due = monotonic() + min(FIRST_PAUSE * 2 ** min(task.tries, 10), longest)
            if isinstance(error, CheckpointError):  # It would fail again in the same way.
                self._give_up(task)
            self._changed.notify_all()

    def _finish(self, task: Task, saved: Saved | None) -> None:
        with self._changed:
            self.running = None
            self.tasks.remove(task)
            if task.snapshot is not None:
                seconds = monotonic() - task.began
                self._slowest = max(self._slowest, seconds)
                self._is_late = seconds > self._limit(task)
            if saved is not None:
                self.finished.append(saved)
            if self.problem is not None:
                _log.warning("'%s' is saved: the problem is over.", task.label)
            # A store that works again deserves the full patience at its next failure.
            self.problem, self._grace = None, GRACE
            self._changed.notify_all()
        self._announce()
