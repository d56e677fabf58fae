"""Intervals: read in every form, compared with counters, written back."""

import pytest

from hookloop.core.progress import Progress
from hookloop.errors import HookloopError, IntervalError
from hookloop.every import Every


@pytest.mark.parametrize(
    ("text", "interval", "written"),
    [
        (50, Every(50, "iters"), "50 iters"),
        ("1", Every(1, "iters"), "1 iter"),
        (" 3  ITERATIONS ", Every(3, "iters"), "3 iters"),
        ("epoch", Every(1, "epochs"), "1 epoch"),
        ("2ep", Every(2, "epochs"), "2 epochs"),
        ("90 s", Every(90, "seconds"), "90 s"),
        ("0.5 min", Every(30, "seconds"), "30 s"),
        ("10 min", Every(600, "seconds"), "10 min"),
        ("2 hours", Every(7200, "seconds"), "2 h"),
        (Every(7, "iters"), Every(7, "iters"), "7 iters"),
    ],
)
def test_an_interval_is_read_and_written(text, interval, written):
    assert Every.parse(text) == interval
    assert str(interval) == written
    assert Every.parse(written) == interval


@pytest.mark.parametrize(
    "value", ["often", "", "3 fortnights", "-1", "1e3", True, 2.5, None, "2 epochs later"]
)
def test_what_is_not_an_interval_is_rejected_with_the_forms(value):
    with pytest.raises(IntervalError, match="is not an interval: write a number of iterations"):
        Every.parse(value)


@pytest.mark.parametrize("value", [0, "0 epochs", "2.5 iters", "0 s"])
def test_a_count_is_positive_and_whole_unless_it_is_time(value):
    with pytest.raises(IntervalError, match="its count must be a positive whole number"):
        Every.parse(value)


def test_the_error_is_ours_and_a_value_error():
    with pytest.raises(ValueError, match="'often' is not an interval") as caught:
        Every.parse("often")
    assert isinstance(caught.value, HookloopError)


def test_an_interval_is_due_at_its_multiples():
    iters = [n for n in range(1, 10) if Every.parse(3).due(Progress(iter=n, epoch=1))]
    epochs = [n for n in range(1, 6) if Every.parse("2 epochs").due(Progress(iter=7, epoch=n))]
    assert (iters, epochs) == ([3, 6, 9], [2, 4])


def test_an_interval_in_time_is_not_decided_by_counters():
    with pytest.raises(IntervalError, match="'10 min' is an interval in time"):
        Every.parse("10 min").due(Progress())


@pytest.mark.parametrize(
    ("moment", "iter", "epoch", "is_reached"),
    [
        (5, 4, 9, False),
        (5, 5, 0, True),
        (5, 6, 0, True),
        ("2 epochs", 99, 1, False),
        ("2 epochs", 0, 2, True),
    ],
)
def test_a_moment_is_reached_when_its_count_is_done(moment, iter, epoch, is_reached):
    assert Every.parse(moment).reached(Progress(iter=iter, epoch=epoch)) is is_reached
