"""A queue by itself, with work that the test holds up and lets go."""

import logging
import threading

import pytest

from hookloop.checkpoint.saving import store_queue
from hookloop.checkpoint.saving.store_queue import Job, StoreQueue
from hookloop.checkpoint.store.index import Saved
from hookloop.errors import CheckpointError


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(store_queue, "FIRST_PAUSE", 0.0)


class Driver:
    """A queue with its condition, as `BackgroundSaver` uses it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.announced = []
        self.queue = StoreQueue(self.changed, lambda: self.announced.append(1))

    def add(self, *jobs):
        with self.changed:
            for job in jobs:
                self.queue.add(job)
            self.changed.notify_all()

    def wait(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, 30)

    def close(self):
        with self.changed:
            seconds = self.queue.begin_closing()
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.queue.jobs, 30)
        self.queue.join()
        return seconds


@pytest.fixture
def driver():
    made = Driver()
    yield made
    made.close()


def saved(name):
    return Saved(name, "here", 1, 0)


class Held(Job):
    """A job that runs until the test allows it to end."""

    def __init__(self, name, **options):
        super().__init__(name, "here", self._wait, **options)
        self.begun, self.allowed = threading.Event(), threading.Event()

    def _wait(self):
        self.begun.set()
        assert self.allowed.wait(30)
        return saved(self.label)


def failing(name, error, failures=10**9, **options):
    tries = []

    def work():
        tries.append(1)
        if len(tries) <= failures:
            raise error
        return saved(name)

    return Job(name, "here", work, **options), tries


def test_jobs_are_done_in_order_and_announced(driver):
    driver.add(*(Job(name, "here", lambda name=name: saved(name)) for name in "abc"))
    driver.wait(lambda: len(driver.queue.finished) == 3)
    assert [one.name for one in driver.queue.finished] == ["a", "b", "c"]
    driver.close()
    assert len(driver.announced) == 3


def test_a_thread_starts_with_the_first_job_and_ends_with_the_queue(driver):
    def threads():
        return [one for one in threading.enumerate() if one.name == "hookloop-save"]

    before = len(threads())
    driver.add(Job("a", "here", lambda: None))
    driver.wait(lambda: not driver.queue.jobs)
    driver.close()
    assert len(threads()) == before
    driver.add(Job("b", "here", lambda: saved("b")))
    driver.wait(lambda: driver.queue.finished)


def test_an_idle_queue_is_not_waited_for(driver):
    assert driver.queue.patience() == 0.0
    job = Held("metrics")  # It writes no snapshot.
    driver.add(job)
    assert driver.queue.patience() == 0.0
    job.allowed.set()


def test_the_patience_is_the_limit_of_the_job_and_grows_with_its_size(driver):
    job = Held("a", memory=object(), max_wait=50.0, nbytes=store_queue.SLOWEST_RATE * 10)
    driver.add(job)
    assert job.begun.wait(30)
    assert 50.0 < driver.queue.patience() <= 60.0
    job.allowed.set()


def test_a_failing_store_has_a_short_patience_that_is_used_up(driver):
    job, _ = failing("a", OSError("gone"), memory=object())
    driver.add(job)
    driver.wait(lambda: driver.queue.problem is not None)
    with driver.changed:
        assert driver.queue.patience() <= store_queue.GRACE
        driver.queue.add_waited(store_queue.GRACE)
        assert driver.queue.patience() <= 0


def test_a_newer_checkpoint_replaces_those_that_wait_but_not_the_running_one(driver, caplog):
    memory = object()
    job = Held("a", memory=memory)
    waiting = Job("b", "here", lambda: saved("b"), memory=object())
    best = Job("best", "here", lambda: saved("best"), needs="b")
    driver.add(job, waiting, best)
    assert job.begun.wait(30)
    with driver.changed:
        assert driver.queue.is_writing(memory) and not driver.queue.is_writing(waiting.memory)
        driver.queue.drop_replaced()
        assert (driver.queue.jobs, driver.queue.lost) == ([job], [waiting, best])
        assert driver.queue.patience() == 0.0  # Training has waited for it already.
    assert "Training continues without waiting for it." in caplog.text
    job.allowed.set()
    driver.wait(lambda: driver.queue.problem is None)


def test_a_failure_is_reported_once_and_so_is_its_end(driver, caplog):
    caplog.set_level(logging.WARNING)
    job, tries = failing("a", OSError("disk full."), failures=3)
    driver.add(job)
    driver.wait(lambda: driver.queue.finished)
    assert len(tries) == 4
    assert [record.getMessage() for record in caplog.records] == [
        "'a' could not be saved: disk full. Training continues; the last good checkpoint stays, "
        "and saving is tried again.",
        "'a' is saved: the problem is over.",
    ]


def test_an_error_that_would_come_again_is_not_tried_again(driver):
    job, tries = failing("a", CheckpointError("no such file"))
    driver.add(job)
    driver.wait(lambda: driver.queue.lost)
    assert (driver.queue.lost, len(tries)) == ([job], 1)


def test_closing_gives_a_failing_job_its_last_tries(driver):
    job, _ = failing("a", OSError("gone"))
    job.tries = 50  # As if it had failed for a long time.
    with driver.changed:
        driver.queue.jobs.append(job)
        assert driver.queue.begin_closing() == pytest.approx(store_queue.MAX_WAIT)
        assert job.tries == store_queue.LAST_TRIES - 1
        driver.queue.jobs.clear()


def test_what_is_abandoned_is_lost_and_the_running_one_is_reported(driver, caplog):
    job = Held("a", memory=object())
    waiting = Job("b", "here", lambda: saved("b"))
    driver.add(job, waiting)
    assert job.begun.wait(30)
    with driver.changed:
        driver.queue.begin_closing()
        driver.queue.abandon(was_interrupted=True)
        assert driver.queue.lost == [waiting]
        assert driver.queue.problem == (
            "'a' could not be saved: the wait for its store was interrupted"
        )
    assert "The run ends without it." in caplog.text
    job.allowed.set()
