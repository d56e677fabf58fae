"""The mean time of a function or a block of code."""

import pytest

from hookloop_mmengine.utils.dl_utils import TimeCounter
from hookloop_mmengine.utils.dl_utils import time_counter as module


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times) / 1000)
    monkeypatch.setattr(TimeCounter, "instance_dict", {})


def test_a_function_is_measured(capsys):
    @TimeCounter(log_interval=2, warmup_interval=2)
    def work(value):
        """Do it."""
        return value

    assert [work(1), work(2), work(3), work(4)] == [1, 2, 3, 4]
    assert work.__doc__ == "Do it."
    assert capsys.readouterr().out.splitlines() == [
        "[work]-time per run averaged in the past 2 runs: 1.0 ms",
        "[work]-time per run averaged in the past 4 runs: 1.0 ms",
    ]


def test_blocks_of_one_tag_are_counted_together(capsys):
    for _ in range(2):
        with TimeCounter(tag="block"):
            pass
    assert "[block]-time per run averaged in the past 2 runs" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="needs a tag"), TimeCounter():
        pass
    with pytest.raises(AssertionError, match="1 or more"):
        TimeCounter(warmup_interval=0)
