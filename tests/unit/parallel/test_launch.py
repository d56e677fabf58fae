"""Ranks are started, told of signals, and ended; without torch in them, which is fast."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hookloop.parallel import launch, processes
from hookloop.parallel.launch import Attempt, Ended
from hookloop.parallel.launched import read_reports
from hookloop.parallel.processes import Starter
from hookloop.parallel.rendezvous import Layout, Rendezvous

pytestmark = pytest.mark.slow

FORKED = pytest.mark.parametrize(
    "modules", [(), ("hookloop.parallel.launched",)], ids=["new", "forked"]
)
"""Each rank is a new process, or a fork of one that has imported what it needs."""

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

    def start(
        body: str, *arguments: str, ranks: int = 3, number: int = 0, modules: tuple[str, ...] = ()
    ) -> Ended:
        script = tmp_path / "rank.py"
        script.write_text(RANK + body)
        folder = tmp_path / "reports"
        folder.mkdir(exist_ok=True)
        with Starter(modules) as starter:
            starter.warm_up({})
            layout = Rendezvous(Layout(ranks))
            return Attempt([str(script), *arguments], layout, folder, number, starter).run()

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


@FORKED
def test_ranks_know_their_place_and_leave_their_exit_code(attempt, capfd, monkeypatch, modules):
    body = """
assert sys.argv[1] == "a=${x} $$", sys.argv
assert launched.restarts_so_far() == 2
assert launched.LAUNCH not in os.environ
assert os.environ["OMP_NUM_THREADS"] == "1"
print("out", rank, flush=True)
print("err", rank, file=sys.stderr, end="" if rank == 2 else None)
sys.exit(launched.report_end(3 if rank == 1 else 0))
"""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = dict(os.environ)
    ended = attempt(body, "a=${x} $$", number=2, modules=modules)
    assert ended.codes == {}
    assert [one.exit_code for one in ended.reports.values()] == [0, 3, 0]
    assert all(one.is_in_order for one in ended.reports.values())
    assert dict(os.environ) == before
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["[rank 1] out 1", "[rank 2] out 2", "out 0"]
    assert sorted(err.splitlines()) == ["[rank 1] err 1", "[rank 2] err 2", "err 0"]


@FORKED
def test_a_killed_rank_ends_the_others(attempt, capfd, modules):
    body = """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
wait_for_signal()
sys.exit(1)
"""
    ended = attempt(body, modules=modules)
    assert ended.codes[1] == -signal.SIGKILL
    assert next(iter(ended.codes)) == 1
    assert ended.reports[1].exit_code is None
    assert ended.signal is None
    # Only those that do not end when they are told to are killed.
    assert list(ended.codes.values()).count(-signal.SIGKILL) == 1
    assert capfd.readouterr().err == ""


def test_what_a_killed_rank_has_started_ends_with_it(attempt, tmp_path):
    body = """
if rank == 1:
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(1)
"""
    attempt(body)
    child = int((tmp_path / "reports/output/1.out").read_text())
    end = time.monotonic() + 60
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(child)


def test_a_rank_that_is_halted_does_not_keep_the_others(attempt, when_up, monkeypatch):
    monkeypatch.setattr(processes, "KILL_AFTER", 1.5)
    when_up(lambda pids: (os.kill(pids[0], signal.SIGSTOP), os.kill(pids[1], signal.SIGKILL)))
    ended = attempt("sys.exit(wait_for_signal())")
    assert ended.codes == dict.fromkeys((0, 1), -signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_forked_ranks_are_as_good_as_new_ones(attempt, capfd):
    body = """
import atexit, random
atexit.register(print, "the end of", rank)
print(random.random())
assert __name__ == "__main__" and sys.argv == [__file__, "x"] and os.getpgid(0) == os.getpid()
assert signal.getsignal(signal.SIGINT) is not None
launched.report_end(0)
if rank == 1:
    raise ValueError("of rank 1")
if rank == 2:
    sys.exit("a reason")
"""
    ended = attempt(body, "x", modules=("hookloop.parallel.launched", "no.such.module"))
    assert ended.codes == {1: 1, 2: 1}
    out, err = capfd.readouterr()
    numbers = {line.split()[-1] for line in out.splitlines() if "the end of" not in line}
    assert len(numbers) == 3  # Python's own generator is not the same in all of them.
    assert out.count("the end of") == 3
    assert "[rank 1] ValueError: of rank 1" in err
    assert "[rank 2] a reason" in err


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
    end = time.monotonic() + 60
    pids = [one.pid for one in read_reports(folder).values()]
    while any(is_running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(is_running(pid) for pid in pids)


def test_what_cannot_be_started_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(launch.Attempt, "_variables", lambda *_: 1 / 0)
    ended = Attempt(["x"], Rendezvous(Layout(2)), tmp_path).run()
    assert isinstance(ended.error, ZeroDivisionError)
    assert ended.reports == {}
