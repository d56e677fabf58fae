"""Intervals: read in every form, compared with counters, written back."""

import pytest

from hookloop.engine.progress import Progress
from hookloop.errors import HookloopError, IntervalError
from hookloop.every import Every, Milestones


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
        ("1 sample", Every(1, "samples"), "1 sample"),
        ("1500 samples", Every(1500, "samples"), "1500 samples"),
        ("100k samples", Every(100_000, "samples"), "100k samples"),
        ("2M tokens", Every(2_000_000, "tokens"), "2M tokens"),
        ("2.3 M Tokens", Every(2_300_000, "tokens"), "2300k tokens"),
        ("1B tokens", Every(10**9, "tokens"), "1B tokens"),
        ("2k iters", Every(2000, "iters"), "2000 iters"),
    ],
)
def test_an_interval_is_read_and_written(text, interval, written):
    assert Every.parse(text) == interval
    assert str(interval) == written
    assert Every.parse(written) == interval


@pytest.mark.parametrize(
    "value",
    [
        "often",
        "",
        "3 fortnights",
        "-1",
        "1e3",
        True,
        2.5,
        None,
        "2 epochs later",
        "2Q tokens",
        "2M",
    ],
)
def test_what_is_not_an_interval_is_rejected_with_the_forms(value):
    with pytest.raises(IntervalError, match="is not an interval: write a number of iterations"):
        Every.parse(value)


@pytest.mark.parametrize("value", [0, "0 epochs", "2.5 iters", "0 s"])
def test_a_count_is_positive_and_whole_unless_it_is_time(value):
    with pytest.raises(IntervalError, match="its count must be a positive whole number"):
        Every.parse(value)


def test_the_error_is_ours_and_a_value_error():
    with pytest.raises(ValueError, match="'often'") as caught:
        Every.parse("often")
    assert isinstance(caught.value, HookloopError)


def test_an_interval_is_due_at_its_multiples():
    iters = [n for n in range(1, 10) if Every.parse(3).due(Progress(iter=n, epoch=1))]
    epochs = [n for n in range(1, 6) if Every.parse("2 epochs").due(Progress(iter=7, epoch=n))]
    assert (iters, epochs) == ([3, 6, 9], [2, 4])


def test_an_interval_in_time_is_not_decided_by_counters():
    with pytest.raises(IntervalError, match="'10 min'"):
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


def test_an_interval_in_samples_is_due_when_the_count_passes_a_multiple():
    every, due, samples = Every.parse("10 samples"), [], 0
    for last in (4, 4, 4, 25, 1, 2):
        samples += last
        due.append(every.due(Progress(samples=samples, last_samples=last)))
    assert due == [False, False, True, True, False, True]  # At 4, 8, 12, 37, 38 and 40.
    assert every.reached(Progress(samples=10)) and not every.reached(Progress(samples=9))


def test_values_hold_from_their_moment_on():
    steps = Milestones.parse({"20 samples": 0, 0: 1, "10 samples": 3})
    assert [steps.at(done) for done in (0, 9, 10, 19, 20, 99)] == [1, 1, 3, 3, 0, 0]
    assert [steps.between(done) for done in (0, 5, 10, 15, 20, 99)] == [1, 2, 3, 1.5, 0, 0]
    assert steps.done(Progress(iter=3, samples=7)) == 7


@pytest.mark.parametrize("values", [{}, {1: 2}, {0: "x"}, {0: True}, {0: 1, "1 s": 2}, {0.5: 1}])
def test_values_that_hold_from_nowhere_are_rejected(values):
    with pytest.raises(IntervalError):
        Milestones.parse(values)
