"""Times of parts."""

import pytest

from hookloop_dialects.vissl.utils.perf_stats import PerfMetric, PerfStats, PerfTimer


def test_a_metric_has_mean_and_moving_mean():
    metric = PerfMetric()
    for value in (1.0, 2.0, 6.0):
        metric.update(value)
    assert (metric.get_avg(), metric.last_value, metric.n) == (3.0, 6.0, 3)
    assert metric.moving_avg == pytest.approx(3.0)


def test_parts_are_reported_in_a_table():
    stats = PerfStats(use_cuda_events=False)
    with PerfTimer("forward", stats):
        pass
    with pytest.raises(KeyError), PerfTimer("failed", stats):
        raise KeyError
    timer = PerfTimer("backward", stats)
    with pytest.raises(RuntimeError, match="not started"):
        timer.stop()
    timer.start()
    timer.stop()
    timer.record()
    lines = str(stats).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["forward", "backward"]
    with PerfTimer("nowhere", None):
        pass
    assert PerfStats().report_str().split() == ["Timer", "Host"]
