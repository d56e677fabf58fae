import threading

import pytest
import torch.distributed as dist

from hookloop.parallel.failure import FailureNotice
from hookloop.parallel.world import World


@pytest.fixture
def store():
    return dist.HashStore()


def words(store, rank, patience=0.01, answer=60.0):
    return FailureNotice(World(rank, 3), store, patience, answer)


def test_the_first_rank_that_fails_has_the_last_word(store):
    words(store, 1).say(ValueError("bad sample 17"), 7)
    words(store, 2).say(OSError("later"), 8)
    heard = words(store, 0).of_another(RuntimeError("gloo: Connection closed by peer"), 7)
    assert str(heard) == "rank 1 failed in iteration 7: ValueError: bad sample 17"
    assert "ValueError: bad sample 17" in heard.traceback and heard.code == 1


def test_an_error_of_its_own_is_not_blamed_on_others(store):
    words(store, 1).say(RuntimeError("gloo is mine"), 7)
    assert words(store, 1).of_another(RuntimeError("gloo is mine"), 7) is None
    database = RuntimeError("Connection to the database is closed")
    assert words(store, 0).of_another(database, 7) is None
    assert words(store, 0).of_another(KeyError("x"), 7) is None
    assert words(store, 0).of_another(RuntimeError("shapes do not fit"), 7) is None


def test_a_rank_that_was_killed_says_nothing(store):
    lost = words(store, 0).of_another(RuntimeError("gloo: Connection closed by peer"), 7)
    assert "connection to another rank broke in iteration 7: it was killed" in str(lost)


def test_a_rank_that_did_not_come_is_named_to_all(store):
    late = RuntimeError("gloo: Timed out waiting 1000ms for recv operation to complete")
    store.set("hookloop/waited/2", "")
    assert "rank 1 did not come in time after iteration 7" in str(
        words(store, 0).of_another(late, 7)
    )
    broken = RuntimeError("gloo: Connection closed by peer")
    assert "rank 1 did not come in time" in str(words(store, 1).of_another(broken, 7))


class SilentStore:
    """A store behind a cut network: torch waits for its answer without a limit."""

    def __init__(self):
        self.asked = 0
        self.is_cut = threading.Event()

    def __getattr__(self, name):
        def ask(*_):
            self.asked += 1
            self.is_cut.wait()

        return ask


def test_a_store_that_does_not_answer_is_asked_once():
    store = SilentStore()
    last_word = words(store, 1, answer=0.2)
    late = RuntimeError("gloo: Timed out waiting 1000ms for recv operation to complete")
    lost = last_word.of_another(late, 7)
    assert "no answer from another rank in time after iteration 7, nor from the store" in str(lost)
    last_word.say(lost, 7)
    last_word.say(ValueError("x"), 7)
    last_word.wait_for_readers()
    assert store.asked == 1
    store.is_cut.set()
