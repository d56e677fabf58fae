"""Ranks are started, told of signals, and ended; without torch in them, which is fast."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hookloop.parallel import launch
from hookloop.parallel.launch import Attempt, Ended
from hookloop.parallel.launched import read_reports
from hookloop.parallel.rendezvous import Layout, Rendezvous

pytestmark = [
    pytest.mark.slow,
    # torch's launcher does not close the files with the output of ranks that have ended.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RANK = """
import os, signal, sys, time
from hookloop.parallel import launched

rank = int(os.environ["RANK"])
received = []
for name in ("SIGTERM", "SIGINT", "SIGUSR1"):
    signal.signal(getattr(signal, name), lambda number, frame: received.append(number))
launched.join_launcher()


def wait_for_signal():
    while not received:
        time.sleep(0.01)
    return launched.report_end(128 + received[0])
"""


@pytest.fixture
def attempt(tmp_path):
    """Start ranks with a script."""

    def start(body: str, *arguments: str, ranks: int = 3, number: int = 0) -> Ended:
        script = tmp_path / "rank.py"
        script.write_text(RANK + body)
        folder = tmp_path / "reports"
        folder.mkdir()
        return Attempt([str(script), *arguments], Rendezvous(Layout(ranks)), folder, number).run()

    return start


@pytest.fixture
def when_up(tmp_path):
    """Call a function once all ranks are up."""
    threads = []

    def wait(action, ranks=3):
        end = time.monotonic() + 60
        while len(read_reports(tmp_path / "reports")) < ranks and time.monotonic() < end:
            time.sleep(0.01)
        action({rank: one.pid for rank, one in read_reports(tmp_path / "reports").items()})

    def later(action):
        threads.append(threading.Thread(target=wait, args=(action,)))
        threads[-1].start()

    yield later
    for thread in threads:
        thread.join()


def is_running(pid):
    try:
        # A zombie has ended; it waits only for its parent.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ranks_know_their_place_and_leave_their_exit_code(attempt, capfd, monkeypatch):
    body = """
assert sys.argv[1] == "a=${x} $$", sys.argv
assert launched.restarts_so_far() == 2
assert launched.LAUNCH not in os.environ
assert os.environ["OMP_NUM_THREADS"] == "1"
print("out", rank, flush=True)
print("err", rank, file=sys.stderr)
sys.exit(launched.report_end(3 if rank == 1 else 0))
"""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = dict(os.environ)
    ended = attempt(body, "a=${x} $$", number=2)
    assert ended.codes == {}
    assert [one.exit_code for one in ended.reports.values()] == [0, 3, 0]
    assert all(one.is_in_order for one in ended.reports.values())
    assert dict(os.environ) == before
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["[rank 1] out 1", "[rank 2] out 2", "out 0"]
    assert sorted(err.splitlines()) == ["[rank 1] err 1", "[rank 2] err 2", "err 0"]


def test_a_killed_rank_ends_the_others(attempt, capfd):
    body = """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
wait_for_signal()
sys.exit(1)
"""
    ended = attempt(body)
    assert ended.codes[1] == -signal.SIGKILL
    assert next(iter(ended.codes)) == 1
    assert ended.reports[1].exit_code is None
    assert ended.signal is None
    # torch's launcher kills ranks that do not end when they are told to.
    assert list(ended.codes.values()).count(-signal.SIGKILL) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_a_signal_is_passed_on_and_counts_as_no_failure(attempt, when_up, name):
    number = signal.Signals[name]
    before = signal.getsignal(number)
    when_up(lambda pids: os.kill(os.getpid(), number))
    ended = attempt("sys.exit(wait_for_signal())")
    assert ended.signal == number
    assert ended.codes == {}
    assert [one.exit_code for one in ended.reports.values()] == [128 + number] * 3
    assert signal.getsignal(number) == before


def test_a_second_signal_kills(attempt, when_up):
    def twice(pids):
        os.kill(os.getpid(), signal.SIGUSR1)  # A warning, which does not count.
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)  # Two that are pending at the same time would be one.

    when_up(twice)
    ended = attempt("while True: time.sleep(1)")
    assert set(ended.codes.values()) <= {-signal.SIGKILL, -signal.SIGTERM}
    assert -signal.SIGKILL in ended.codes.values()
    assert ended.signal == signal.SIGUSR1


def test_a_signal_before_there_are_ranks_ends_the_launcher(tmp_path, monkeypatch):
    have_come, has_waited = threading.Event(), threading.Event()

    def waits_for_nodes(self):
        os.kill(os.getpid(), signal.SIGTERM)
        have_come.wait(300)
        has_waited.set()

    monkeypatch.setattr(Attempt, "_run_agent", waits_for_nodes)
    ended = Attempt(["x"], Rendezvous(Layout(2, 2, "host:1")), tmp_path).run()
    assert ended.signal == signal.SIGTERM
    assert not has_waited.is_set()
    have_come.set()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_no_rank_outlives_a_killed_launcher(tmp_path):
    (tmp_path / "rank.py").write_text(RANK + "while True: time.sleep(1)")
    folder = tmp_path / "reports"
    folder.mkdir()
    code = (
        "from pathlib import Path\n"
        "from hookloop.parallel.launch import Attempt\n"
        "from hookloop.parallel.rendezvous import Layout, Rendezvous\n"
        f"command, folder = [{str(tmp_path / 'rank.py')!r}], Path({str(folder)!r})\n"
        "Attempt(command, Rendezvous(Layout(2)), folder).run()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as launcher:
        while len(read_reports(folder)) < 2:
            assert launcher.poll() is None
            time.sleep(0.02)
        launcher.kill()
    end = time.monotonic() + 5
    pids = [one.pid for one in read_reports(folder).values()]
    while any(is_running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(is_running(pid) for pid in pids)


def test_what_cannot_be_started_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(launch.Attempt, "_variables", lambda *_: 1 / 0)
    ended = Attempt(["x"], Rendezvous(Layout(2)), tmp_path).run()
    assert isinstance(ended.error, ZeroDivisionError)
    assert ended.reports == {}
