"""Events hold tasks up and let them go, so that every order of events can be tested."""

import logging
import threading

import pytest

from hookloop.checkpoint.saving import writer as module
from hookloop.checkpoint.saving.writer import Task, Writer
from hookloop.checkpoint.store.index import Saved
from hookloop.errors import CheckpointError

MEMORY = object()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)


@pytest.fixture
def writer():
    made = Writer(lambda task: task.content())
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


def write(work, location="here", snapshot=MEMORY, **options):
    saved = Saved(work.name, location, 1, 0)
    return Task("write", saved, None, content=work, snapshot=snapshot, **options)


def link(work, of, location="here", **options):
    saved = Saved(work.name, location, 1, 0)
    return Task("link", saved, None, content=work, source=of, **options)


def names(news):
    return [saved.name for saved in news]


def test_tasks_are_done_in_the_order_given(writer):
    done = []
    for name in "abcdefgh":
        writer.submit(link(Work(name, done), "x"))
    writer.close()
    assert "".join(done) == "abcdefgh"
    assert "".join(names(writer.take_finished())) == "abcdefgh"


def test_memory_is_not_free_before_the_write_that_uses_it_is_done(writer):
    done = []
    held = Work("a", done, held=True)
    writer.submit(write(held))
    waiting = threading.Thread(target=lambda: (writer.wait_until_free(MEMORY), done.append("room")))
    waiting.start()  # Perhaps before the writer's own thread has looked at the job.
    held.begun.wait(30)
    assert waiting.is_alive()
    held.allowed.set()
    waiting.join(30)
    assert done == ["a", "room"]


def test_at_most_one_write_waits_however_slow_the_store(writer):
    done, running, most = [], [], []

    class Slow(Work):
        def __call__(self):
            running.append(self.name)
            most.append(len(running))
            running.remove(self.name)
            return super().__call__()

    for number in range(50):
        writer.wait_until_free(MEMORY)
        writer.submit(write(Slow(str(number), done)))
    writer.close()
    assert done == [str(number) for number in range(50)]
    assert max(most) == 1


def test_a_promotion_is_not_waited_for(writer):
    held = Work("best", [], held=True)
    writer.submit(link(held, "a"))
    writer.wait_until_free(MEMORY)
    held.allowed.set()


def test_a_failed_write_is_reported_once_and_tried_again_until_it_succeeds(writer, caplog):
    caplog.set_level(logging.INFO)
    work = Work("a", [], failures=4)
    writer.submit(write(work))
    while not (news := writer.take_finished()):
        pass
    assert names(news) == ["a"]
    assert writer.problem is None
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "No space left on device" in text]) == 1
    assert "the last good checkpoint stays, and saving is tried again." in messages[0]
    assert messages[-1] == "'here/a' is saved: the problem is over."


def test_a_failed_write_is_given_up_for_a_newer_one(writer):
    done, lost = [], []
    work = Work("a", done, failures=10**9)
    writer.submit(write(work, on_lost=lambda: lost.append("a")))
    writer.wait_until_free(MEMORY)
    writer.submit(write(Work("b", done)))
    writer.close()
    assert done == ["b"]
    assert names(writer.take_finished()) == ["b"]
    assert lost == ["a"]
    assert writer.problem is None


def test_memory_is_freed_even_if_the_write_fails_while_training_waits(writer):
    work = Work("a", [], failures=10**9, held=True)
    writer.submit(write(work))
    waiting = threading.Thread(target=writer.wait_until_free, args=[MEMORY])
    waiting.start()
    work.begun.wait(30)
    work.allowed.set()
    waiting.join(30)
    assert not waiting.is_alive()


def test_what_was_to_be_made_of_a_lost_file_is_lost_with_it(writer):
    done, lost = [], []
    work = Work("a", done, failures=10**9)
    best = Work("best", done)
    writer.submit(write(work))
    writer.submit(link(best, "a", on_lost=lambda: lost.append("best")))
    writer.wait_until_free(MEMORY)
    writer.submit(write(Work("b", done)))
    writer.close()
    writer.take_finished()
    assert done == ["b"]
    assert (best.tries, lost) == (0, ["best"])


def test_a_failed_promotion_does_not_take_later_writes_with_it(writer):
    done = []
    missing = Work("best", done, failures=9, error=CheckpointError("it is not there"))
    held = Work("first", done, held=True)
    writer.submit(link(held, "x"))
    writer.submit(link(missing, "a"))
    writer.submit(write(Work("b", done)))
    held.allowed.set()
    writer.close()
    assert done == ["first", "b"]
    assert missing.tries == 1  # Trying again would not help.


def test_a_store_that_fails_does_not_hold_up_another(writer):
    done = []
    bad = Work("a", done, failures=10**9)
    writer.submit(write(bad, "full"))
    writer.submit(write(Work("b", done), "other"))
    while "b" not in done or writer.problem is None:
        pass
    assert "full/a" in writer.problem
    writer.close()


def test_the_end_waits_for_what_can_be_saved(writer):
    done = []
    held = Work("a", done, held=True)
    writer.submit(write(held))
    writer.submit(link(Work("best", done), "a"))
    closing = threading.Thread(target=writer.close)
    closing.start()
    held.allowed.set()
    closing.join(30)
    assert done == ["a", "best"]


def test_the_end_gives_up_after_a_few_last_tries_and_leaves_the_problem(writer):
    work = Work("a", [], failures=10**9)
    writer.submit(write(work))
    writer.close()
    assert work.tries >= module.LAST_TRIES
    assert writer.problem == "'here/a' could not be saved: [Errno 28] No space left on device"


def test_whatever_a_store_raises_the_thread_lives_on(writer):
    class Foreign(Exception):
        pass

    done = []
    writer.submit(write(Work("a", done, failures=2, error=Foreign("the bucket is gone"))))
    writer.submit(link(Work("best", done), "a"))
    writer.close()
    assert done == ["a", "best"]


def test_it_can_be_used_again_after_its_end(writer):
    done = []
    for name in "ab":
        writer.submit(write(Work(name, done)))
        writer.close()
    assert done == ["a", "b"]


def test_jobs_that_are_still_to_be_done_are_known(writer):
    held = Work("a", [], held=True)
    writer.submit(write(held))
    assert writer.has("here/a")
    assert not writer.has("here/b")
    held.allowed.set()
    writer.close()
    assert not writer.has("here/a")


def test_a_store_that_does_not_answer_is_waited_for_once_and_not_for_long(writer, caplog):
    done = []
    held = Work("a", done, held=True)
    writer.submit(write(held, max_wait=0.05))
    held.begun.wait(30)
    assert not writer.wait_until_free(MEMORY)  # The store may still read it.
    assert "'here/a' could not be saved: no answer from its store for" in writer.problem
    other = object()
    for name in "bcd":
        assert writer.wait_until_free(other)  # What waits behind it is replaced.
        writer.submit(write(Work(name, done), snapshot=other, max_wait=0.05))
    held.allowed.set()
    news = []
    while len(news) < 2:
        news += names(writer.take_finished())
    assert news == done == ["a", "d"]
    assert writer.problem is None
    assert caplog.text.count("Training continues without waiting for it.") == 1
    assert caplog.text.count("the problem is over") == 1


def test_a_store_that_does_not_answer_does_not_hold_up_another(writer):
    done = []
    held = Work("a", done, held=True)
    writer.submit(write(held, "lost", max_wait=0.05))
    writer.submit(write(Work("b", done), "other"))
    assert not writer.wait_until_free(MEMORY)
    assert done == ["b"]
    writer.submit(write(Work("c", done), "other"))
    writer.close()
    assert done == ["b", "c"]
    assert "lost/a" in writer.problem
    held.allowed.set()


def test_the_end_does_not_wait_forever(writer):
    done, lost = [], []
    held = Work("a", done, held=True)
    writer.submit(write(held, max_wait=0.05))
    writer.submit(link(Work("best", done), "a", on_lost=lambda: lost.append("best")))
    held.begun.wait(30)
    writer.close()
    assert writer.take_finished() == []
    assert lost == ["best"]
    assert "'here/a' could not be saved" in writer.problem
    held.allowed.set()  # It answers after all: what it has is good.
    while not (news := writer.take_finished()):
        pass
    assert names(news) == ["a"]


def test_an_interrupted_end_does_not_wait_again(writer, monkeypatch):
    held = Work("a", [], held=True)
    writer.submit(write(held))
    held.begun.wait(30)

    def interrupt(timeout=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writer._changed, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer.close()
    writer.close()
    assert writer.problem == "'here/a' could not be saved: the wait for its store was interrupted"
    held.allowed.set()


def test_what_the_last_checkpoint_has_waited_the_end_does_not_wait_again(writer, monkeypatch):
    held = Work("a", [], held=True)
    writer.submit(write(held, max_wait=1.0))
    held.begun.wait(30)
    writer.wait_until_free(MEMORY)
    writer.submit(write(Work("b", []), snapshot=object(), max_wait=1.0))
    waits = []
    with monkeypatch.context() as patch:
        patch.setattr(writer._changed, "wait", waits.append)
        writer.close()
    # Less than again the whole: on a busy machine the first wait began a moment after the task.
    assert max(waits, default=0.0) < 1.0
    held.allowed.set()


def test_a_large_checkpoint_gets_the_time_that_it_needs(writer):
    held = Work("a", [], held=True)
    writer.submit(write(held, max_wait=0.05, nbytes=module.SLOWEST_RATE * 1000))
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive()
    held.allowed.set()
    closing.join(30)
    assert writer.problem is None


def test_a_store_that_fails_slowly_does_not_slow_the_training_down(writer, monkeypatch):
    monkeypatch.setattr(module, "GRACE", 0.0)
    again = threading.Event()

    class Failing(Work):
        def __call__(self):
            if not self.tries:
                self.tries += 1
                raise OSError("the bucket is gone")
            again.set()
            return super().__call__()

    held = Failing("a", [], held=True)
    writer.submit(write(held))
    assert again.wait(30)
    assert not writer.wait_until_free(MEMORY)
    held.allowed.set()


def test_metrics_that_cannot_be_added_do_not_delay_a_new_checkpoint(writer, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 3600.0)
    done = []
    writer.submit(link(Work("metrics", done, failures=1), "x"))
    while writer.problem is None:
        pass
    writer.wait_until_free(MEMORY)
    writer.submit(write(Work("a", done)))
    while len(done) < 2:
        pass
    assert done == ["metrics", "a"]


def test_a_thread_starts_with_the_first_task_and_ends_with_the_last(writer):
    def threads():
        return [one for one in threading.enumerate() if one.name == "hookloop-save"]

    before = len(threads())
    for name in "ab":
        writer.submit(write(Work(name, [])))
        assert len(threads()) == before + 1
        writer.close()
        assert len(threads()) == before


def test_results_are_lost_with_their_file_and_have_no_name_of_their_own(writer):
    lost = []
    bad = Work("a", [], failures=9, error=CheckpointError("it cannot be"))
    held = Work("first", [], held=True)
    writer.submit(link(held, "x"))
    writer.submit(write(bad))
    results = Task("results", Saved("a", "here", 1, 0), None, on_lost=lambda: lost.append("a"))
    writer.submit(results)
    assert (results.label, results.needs) == ("here/a (metrics)", "here/a")
    held.allowed.set()
    writer.close()
    writer.take_finished()
    assert lost == ["a"]
