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
    heard = words(store, 0).of_another(RuntimeError("Connection closed by peer"))
    assert str(heard) == "rank 1 failed in iteration 7: ValueError: bad sample 17"
    assert "ValueError: bad sample 17" in heard.traceback and heard.code == 1


def test_an_error_of_its_own_is_not_blamed_on_others(store):
    words(store, 1).say(RuntimeError("mine"), 7)
    assert words(store, 1).of_another(RuntimeError("mine")) is None
    assert words(store, 0).of_another(KeyError("x")) is None


def test_without_a_word_nobody_is_blamed(store):
    assert words(store, 0).of_another(RuntimeError("Connection closed by peer")) is None
