import pytest

from hookloop.hooks import _stopwatch
from hookloop.hooks._stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves by itself."""
    now = [100.0]
    monkeypatch.setattr(_stopwatch, "monotonic", lambda: now[0])

    def move(seconds):
        now[0] += seconds

    return move


def test_it_counts_from_its_start(clock):
    watch = Stopwatch()
    clock(5)
    assert watch.seconds == 0
    watch.start()
    clock(5)
    assert watch.seconds == 5
    watch.stop()
    clock(5)
    assert watch.seconds == 5


def test_it_continues_after_the_seconds_of_a_checkpoint(clock):
    watch = Stopwatch()
    clock(50)  # A long preparation does not count.
    watch.load(20)
    watch.start()
    clock(5)
    assert watch.seconds == 25


def test_going_back_gives_no_time_back_and_counts_none_twice(clock):
    watch = Stopwatch()
    watch.start()
    clock(30)
    watch.load(20)
    clock(5)
    assert watch.seconds == 35
