"""The clock of iMIX's hooks."""

import pytest

from hookloop_dialects.imix.utils.Timer import Timer, batch_iter


def test_seconds_pass():
    start = Timer.now()
    assert Timer.passed_seconds(start, start + 2) == pytest.approx(2)
    assert Timer.passed_seconds(start=start, end=Timer.now()) >= 0


def test_a_function_returns_how_long_it_took():
    result, seconds = Timer.run_time(lambda a, b: a + b)(1, b=2)
    assert result == 3 and seconds >= 0


def test_batches_come_with_their_number_and_time():
    found = list(batch_iter("ab"))
    assert [(number, batch) for number, batch, _ in found] == [(0, "a"), (1, "b")]
    assert all(seconds >= 0 for *_, seconds in found)
