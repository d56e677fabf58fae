import pytest
import torch.distributed as dist

from hookloop.parallel.failure import LastWord
from hookloop.parallel.world import World


@pytest.fixture
def store():
    return dist.HashStore()


def words(store, rank, patience=0.01):
    return LastWord(World(rank, 3), store, patience)


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
