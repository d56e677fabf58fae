"""How long things take."""

import pytest

from hookloop_mmengine import utils
from hookloop_mmengine.utils import timer as module


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr(module, "time", lambda: float(next(times)))


def test_a_block_is_timed(capsys):
    timer = utils.Timer(start=False, print_tmpl="{:.1f} s")
    with timer:
        assert timer.is_running
    assert capsys.readouterr().out == "1.0 s\n"
    assert not timer.is_running


def test_checks():
    timer = utils.Timer()
    assert timer.since_start() == 2  # The start looks at the clock twice.
    assert timer.since_last_check() == 1
    timer.start()
    assert timer.since_start() == 5
    stopped = utils.Timer(start=False)
    for check in (stopped.since_start, stopped.since_last_check):
        with pytest.raises(utils.TimerError, match="timer is not running"):
            check()


def test_a_timer_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(module, "_timers", {})
    assert [utils.check_time("a"), utils.check_time("a"), utils.check_time("b")] == [0, 1, 0]
