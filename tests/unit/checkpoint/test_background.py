"""Events hold jobs up and let them go, so that every order of events can be tested."""

import logging
import threading
import time

import pytest

from hookloop.checkpoint.saving import store_queue
from hookloop.checkpoint.saving.background import BackgroundSaver, Job
from hookloop.checkpoint.store.index import Saved
from hookloop.errors import CheckpointError

MEMORY = object()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(store_queue, "FIRST_PAUSE", 0.0)


@pytest.fixture
def saver():
    made = BackgroundSaver(lambda: None)
    yield made
    made.close()


class Work:
    """Something to save, which waits for permission and may fail."""

    def __init__(self, name, done, *, failures=0, error=None, held=False):
        self.name = name
        self.done = done
        self.failures = failures
        self.error = error or OSError(28, "No space left on device")
        self.tries = 0
        self.begun = threading.Event()
        self.allowed = threading.Event()
        if not held:
            self.allowed.set()

    def __call__(self):
        self.begun.set()
        self.allowed.wait(30)
        self.tries += 1
        if self.tries <= self.failures:
            raise self.error
        self.done.append(self.name)
        return Saved(self.name, "here", 1, 0)


def write(work, location="here", **options):
    return Job(f"{location}/{work.name}", location, work, memory=MEMORY, **options)


def promote(work, of, location="here", **options):
    return Job(f"{location}/{work.name}", location, work, needs=f"{location}/{of}", **options)


def names(news):
    return [saved.name for saved in news]


def test_jobs_are_done_in_the_order_given(saver):
    done = []
    for name in "abcdefgh":
        saver.submit(promote(Work(name, done), "x"))
    saver.close()
    assert "".join(done) == "abcdefgh"
    assert "".join(names(saver.take_finished())) == "abcdefgh"


def test_memory_is_not_free_before_the_write_that_uses_it_is_done(saver):
    done = []
    held = Work("a", done, held=True)
    saver.submit(write(held))
    waiting = threading.Thread(target=lambda: (saver.wait_until_free(MEMORY), done.append("room")))
    waiting.start()  # Perhaps before the saver's own thread has looked at the job.
    held.begun.wait(30)
    assert waiting.is_alive()
    held.allowed.set()
    waiting.join(30)
    assert done == ["a", "room"]


def test_at_most_one_write_waits_however_slow_the_store(saver):
    done, running, most = [], [], []

    def slow(name):
        running.append(name)
        most.append(len(running))
        running.remove(name)
        done.append(name)
        return Saved(name, "here", 1, 0)

    for number in range(50):
        saver.wait_until_free(MEMORY)
        saver.submit(Job(f"here/{number}", "here", lambda n=number: slow(str(n)), memory=MEMORY))
    saver.close()
    assert done == [str(number) for number in range(50)]
    assert max(most) == 1


def test_a_promotion_is_not_waited_for(saver):
    held = Work("best", [], held=True)
    saver.submit(promote(held, "a"))
    saver.wait_until_free(MEMORY)
    held.allowed.set()


def test_a_failed_write_is_reported_once_and_tried_again_until_it_succeeds(saver, caplog):
    caplog.set_level(logging.INFO)
    work = Work("a", [], failures=4)
    saver.submit(write(work))
    while not (news := saver.take_finished()):
        pass
    assert names(news) == ["a"]
    assert saver.problem is None
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "No space left on device" in text]) == 1
    assert "the last good checkpoint stays, and saving is tried again." in messages[0]
    assert messages[-1] == "'here/a' is saved: the problem is over."


def test_a_failed_write_is_given_up_for_a_newer_one(saver):
    done, lost = [], []
    work = Work("a", done, failures=10**9)
    saver.submit(write(work, on_lost=lambda: lost.append("a")))
    saver.wait_until_free(MEMORY)
    saver.submit(write(Work("b", done)))
    saver.close()
    assert done == ["b"]
    assert names(saver.take_finished()) == ["b"]
    assert lost == ["a"]
    assert saver.problem is None


def test_memory_is_freed_even_if_the_write_fails_while_training_waits(saver):
    work = Work("a", [], failures=10**9, held=True)
    saver.submit(write(work))
    waiting = threading.Thread(target=saver.wait_until_free, args=[MEMORY])
    waiting.start()
    work.begun.wait(30)
    work.allowed.set()
    waiting.join(30)
    assert not waiting.is_alive()


def test_what_was_to_be_made_of_a_lost_file_is_lost_with_it(saver):
    done, lost = [], []
    work = Work("a", done, failures=10**9)
    best = Work("best", done)
    saver.submit(write(work))
    saver.submit(promote(best, "a", on_lost=lambda: lost.append("best")))
    saver.wait_until_free(MEMORY)
    saver.submit(write(Work("b", done)))
    saver.close()
    saver.take_finished()
    assert done == ["b"]
    assert (best.tries, lost) == (0, ["best"])


def test_a_failed_promotion_does_not_take_later_writes_with_it(saver):
    done = []
    missing = Work("best", done, failures=9, error=CheckpointError("it is not there"))
    held = Work("first", done, held=True)
    saver.submit(promote(held, "x"))
    saver.submit(promote(missing, "a"))
    saver.submit(write(Work("b", done)))
    held.allowed.set()
    saver.close()
    assert done == ["first", "b"]
    assert missing.tries == 1  # Trying again would not help.


def test_a_store_that_fails_does_not_hold_up_another(saver):
    done = []
    bad = Work("a", done, failures=10**9)
    saver.submit(write(bad, "full"))
    saver.submit(write(Work("b", done), "other"))
    while "b" not in done or saver.problem is None:
        pass
    assert "full/a" in saver.problem
    saver.close()


def test_the_end_waits_for_what_can_be_saved(saver):
    done = []
    held = Work("a", done, held=True)
    saver.submit(write(held))
    saver.submit(promote(Work("best", done), "a"))
    closing = threading.Thread(target=saver.close)
    closing.start()
    held.allowed.set()
    closing.join(30)
    assert done == ["a", "best"]


def test_the_end_gives_up_after_a_few_last_tries_and_leaves_the_problem(saver):
    work = Work("a", [], failures=10**9)
    saver.submit(write(work))
    saver.close()
    assert work.tries >= store_queue.LAST_TRIES
    assert saver.problem == "'here/a' could not be saved: [Errno 28] No space left on device"


def test_whatever_a_store_raises_the_thread_lives_on(saver):
    class Foreign(Exception):
        pass

    done = []
    saver.submit(write(Work("a", done, failures=2, error=Foreign("the bucket is gone"))))
    saver.submit(promote(Work("best", done), "a"))
    saver.close()
    assert done == ["a", "best"]


def test_it_can_be_used_again_after_its_end(saver):
    done = []
    for name in "ab":
        saver.submit(write(Work(name, done)))
        saver.close()
    assert done == ["a", "b"]


def test_jobs_that_are_still_to_be_done_are_known(saver):
    held = Work("a", [], held=True)
    saver.submit(write(held))
    assert saver.has_job("here/a")
    assert not saver.has_job("here/b")
    held.allowed.set()
    saver.close()
    assert not saver.has_job("here/a")


def test_a_store_that_does_not_answer_is_waited_for_once_and_not_for_long(saver, caplog):
    done = []
    held = Work("a", done, held=True)
    saver.submit(write(held, max_wait=0.05))
    held.begun.wait(30)
    assert not saver.wait_until_free(MEMORY)  # The store may still read it.
    assert "'here/a' could not be saved: no answer from its store for" in saver.problem
    other = object()
    for name in "bcd":
        assert saver.wait_until_free(other)  # What waits behind it is replaced.
        saver.submit(Job(f"here/{name}", "here", Work(name, done), memory=other, max_wait=0.05))
    held.allowed.set()
    news = []
    while len(news) < 2:
        news += names(saver.take_finished())
    assert news == done == ["a", "d"]
    assert saver.problem is None
    assert caplog.text.count("Training continues without waiting for it.") == 1
    assert caplog.text.count("the problem is over") == 1


def test_a_store_that_does_not_answer_does_not_hold_up_another(saver):
    done = []
    held = Work("a", done, held=True)
    saver.submit(write(held, "lost", max_wait=0.05))
    saver.submit(write(Work("b", done), "other"))
    assert not saver.wait_until_free(MEMORY)
    assert done == ["b"]
    saver.submit(write(Work("c", done), "other"))
    saver.close()
    assert done == ["b", "c"]
    assert "lost/a" in saver.problem
    held.allowed.set()


def test_the_end_does_not_wait_forever(saver):
    done, lost = [], []
    held = Work("a", done, held=True)
    saver.submit(write(held, max_wait=0.05))
    saver.submit(promote(Work("best", done), "a", on_lost=lambda: lost.append("best")))
    held.begun.wait(30)
    saver.close()
    assert saver.take_finished() == []
    assert lost == ["best"]
    assert "'here/a' could not be saved" in saver.problem
    held.allowed.set()  # It answers after all: what it has is good.
    while not (news := saver.take_finished()):
        pass
    assert names(news) == ["a"]


def test_an_interrupted_end_does_not_wait_again(saver, monkeypatch):
    held = Work("a", [], held=True)
    saver.submit(write(held))
    held.begun.wait(30)

    def interrupt(timeout=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(saver._changed, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            saver.close()
    saver.close()
    assert saver.problem == "'here/a' could not be saved: the wait for its store was interrupted"
    held.allowed.set()


def test_what_the_last_checkpoint_has_waited_the_end_does_not_wait_again(saver):
    held = Work("a", [], held=True)
    saver.submit(write(held, max_wait=1.0))
    held.begun.wait(30)
    saver.wait_until_free(MEMORY)
    saver.submit(Job("here/b", "here", Work("b", []), memory=object(), max_wait=1.0))
    began = time.monotonic()
    saver.close()
    assert time.monotonic() - began < 0.9
    held.allowed.set()


def test_a_large_checkpoint_gets_the_time_that_it_needs(saver):
    held = Work("a", [], held=True)
    saver.submit(write(held, max_wait=0.05, nbytes=store_queue.SLOWEST_RATE * 1000))
    closing = threading.Thread(target=saver.close)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive()
    held.allowed.set()
    closing.join(30)
    assert saver.problem is None


def test_a_store_that_fails_slowly_does_not_slow_the_training_down(saver, monkeypatch):
    monkeypatch.setattr(store_queue, "GRACE", 0.0)
    tries, begun, allowed = [], threading.Event(), threading.Event()

    def work():
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the bucket is gone")
        begun.set()
        allowed.wait(30)

    saver.submit(Job("here/a", "here", work, memory=MEMORY))
    assert begun.wait(30)
    assert not saver.wait_until_free(MEMORY)
    allowed.set()


def test_metrics_that_cannot_be_added_do_not_delay_a_new_checkpoint(saver, monkeypatch):
    monkeypatch.setattr(store_queue, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(store_queue, "LONGEST_PAUSE", 3600.0)
    done = []
    saver.submit(promote(Work("metrics", done, failures=1), "x"))
    while saver.problem is None:
        pass
    saver.wait_until_free(MEMORY)
    saver.submit(write(Work("a", done)))
    while len(done) < 2:
        pass
    assert done == ["metrics", "a"]
