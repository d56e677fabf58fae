import json
import os
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookloop.runs.layout import RunDir
from hookloop.runs.life import Holder
from hookloop.runs.lock import LOCK, RunLock
from hookloop.runs.reader import FRESH, Best, list_runs, summarize, trained_seconds

SUMMARY = {
    "status": "completed",
    "reason": "",
    "started": "2026-01-31T09:00:00+00:00",
    "ended": "2026-01-31T09:01:30+00:00",
    "iter": 40,
    "epoch": 2,
    "best": {
        "val/loss": {"value": 0.1, "iter": 20, "epoch": 1},
        "val/accuracy": {"value": 0.98, "iter": 40, "epoch": 2},
    },
}


def forking(test: Callable[[Path], None]) -> Callable[[Path], None]:
    """Mark a test that forks this process."""
    quiet = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    return pytest.mark.slow(quiet(test))


def make(path: Path, **changes: object) -> RunDir:
    run = RunDir.create(path)
    run.write_summary({**SUMMARY, **changes})
    return run


def test_a_finished_run_tells_how_it_ended(tmp_path: Path) -> None:
    run = summarize(make(tmp_path / "a"), tmp_path)
    assert (run.name, run.status, run.epochs, run.iters) == ("a", "completed", 2, 40)
    assert run.best == Best("val/accuracy", 0.98, 2, 40)
    assert run.seconds == 90


def test_a_run_without_an_end_is_dead_and_got_as_far_as_its_metrics_tell(tmp_path: Path) -> None:
    run = make(tmp_path, status="running", ended=None, iter=0, epoch=0, best=None)
    run.metrics_file.write_text('{"time": 1769850010.0, "iter": 7, "epoch": 1}\n')
    summary = summarize(run)
    assert (summary.status, summary.iters, summary.epochs) == ("dead", 7, 1)
    assert summary.best is None
    assert summary.seconds == 10


def test_a_run_with_metrics_only_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").touch()
    (run,) = list_runs(tmp_path)
    assert (run.status, run.started, run.seconds) == ("unknown", None, None)
    assert run.name == tmp_path.name


def unfinished(path: Path, lock: str | None = None) -> RunDir:
    run = make(path, status="running", ended=None)
    if lock is not None:
        (path / LOCK).write_text(lock)
    return run


@forking
def test_a_run_of_this_process_is_running_and_looking_leaves_its_lock_alone(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    lock.take()
    assert summarize(unfinished(tmp_path)).status == "running"
    pid = os.fork()
    if pid == 0:  # Another process, for which the lock is that of a stranger.
        os._exit(0 if summarize(RunDir(tmp_path)).status == "running" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    lock.give_back()
    assert summarize(RunDir(tmp_path)).status == "dead"


@forking
def test_a_run_whose_process_was_killed_is_dead(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        RunLock(tmp_path).take()
        os.kill(os.getpid(), 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # It is dead, and still has its number.
    run = summarize(unfinished(tmp_path))
    assert (run.status, run.reason) == ("dead", f"process {pid} on {socket.gethostname()} is gone")
    os.waitpid(pid, 0)
    assert summarize(RunDir(tmp_path)).status == "dead"


def test_another_process_of_the_same_number_is_not_taken_for_the_run(tmp_path: Path) -> None:
    this = Holder.this()
    if not this.begun:
        pytest.skip("the system does not tell when a process began")
    assert summarize(unfinished(tmp_path / "a", this.text)).status == "running"
    other = Holder(this.pid, this.host, f"{this.begun}0")
    assert summarize(unfinished(tmp_path / "b", other.text)).status == "dead"


def test_a_copy_of_a_run_that_is_running_is_not(tmp_path: Path) -> None:
    lock = RunLock(unfinished(tmp_path / "run").path)
    lock.take()
    (tmp_path / "copy").mkdir()
    for name in ("summary.json", LOCK):
        (tmp_path / "copy" / name).write_bytes((tmp_path / "run" / name).read_bytes())
    # Reading the lock in this process has released it; what it names is still there.
    assert {run.name: run.status for run in list_runs(tmp_path)} == {
        "run": "running",
        "copy": "dead",
    }
    lock.give_back()


def test_a_run_on_another_host_is_running_while_it_writes(tmp_path: Path) -> None:
    run = unfinished(tmp_path, "process 7 on gpu-12")
    assert (summarize(run).status, summarize(run).reason) == ("running", "on gpu-12")
    old = time.time() - 2 * FRESH
    for file in tmp_path.iterdir():
        os.utime(file, (old, old))
    summary = summarize(run)
    assert summary.status == "unknown"
    assert summary.reason == "no sign of life from process 7 on gpu-12 for 0:20:00"


def test_a_run_that_was_resumed_and_has_written_nothing_yet_is_running(tmp_path: Path) -> None:
    lock = RunLock(make(tmp_path).path)
    lock.take()
    assert summarize(RunDir(tmp_path)).status == "running"
    lock.give_back()
    assert summarize(RunDir(tmp_path)).status == "completed"


def test_a_run_that_was_killed_before_it_wrote_anything_is_listed(tmp_path: Path) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / LOCK).write_text(f"process 999999999 on {socket.gethostname()}")
    assert [(run.name, run.status) for run in list_runs(tmp_path)] == [("early", "dead")]


def test_the_time_taken_has_no_pauses(tmp_path: Path) -> None:
    written = "2026-01-31T12:00:00+00:00"
    ended = make(tmp_path / "ended", seconds=100.5, written=written)
    assert summarize(ended).seconds == 100.5
    killed = make(tmp_path / "killed", status="running", ended=None, seconds=100.0, written=written)
    last = datetime(2026, 1, 31, 12, 0, 30, tzinfo=UTC).timestamp()
    killed.metrics_file.write_text(json.dumps({"time": last}) + "\n")
    assert summarize(killed).seconds == trained_seconds(killed) == 130.0


def test_the_time_of_a_run_that_is_running_goes_on(tmp_path: Path) -> None:
    now = datetime.now(UTC).isoformat()
    run = make(tmp_path, status="running", ended=None, seconds=50.0, written=now)
    lock = RunLock(tmp_path)
    lock.take()
    assert 50.0 <= (summarize(run).seconds or 0) < 100.0
    lock.give_back()


def test_runs_are_found_at_any_depth_the_oldest_first(tmp_path: Path) -> None:
    make(tmp_path / "b" / "late", started="2026-03-01T00:00:00+00:00")
    make(tmp_path / "a", started="2026-02-01T00:00:00")
    make(tmp_path / "c" / "early" / "x", started="2026-01-01T00:00:00+00:00")
    (tmp_path / "other").mkdir()
    make(tmp_path / ".hidden")
    assert [run.name for run in list_runs(tmp_path)] == ["c/early/x", "a", "b/late"]


def deep(path: Path) -> None:
    (path / "summary.json").write_text("[" * 100_000 + "]" * 100_000)


def deep_within(path: Path) -> None:
    (path / "summary.json").write_text('{"a": ' * 700 + "1" + "}" * 700)


def huge(path: Path) -> None:
    with (path / "summary.json").open("wb") as file:
        file.truncate(50_000_000_000)


def loop(path: Path) -> None:
    (path / "summary.json").symlink_to("summary.json")


def bound(path: Path) -> None:
    (path / "metrics.jsonl").touch()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path)  # The path of a socket has to be short.
        server.bind("summary.json")
        os.chdir(here)


def summary(**changes: object) -> Callable[[Path], None]:
    text = json.dumps({**SUMMARY, **changes})
    return lambda path: (path / "summary.json").write_text(text) and None  # type: ignore[func-returns-value]


def content(text: str | bytes, name: str = "summary.json") -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text
    return lambda path: (path / name).write_bytes(data) and None  # type: ignore[func-returns-value]


HOSTILE: dict[str, Callable[[Path], object]] = {
    "half": content("{"),
    "empty": content(""),
    "binary": content(bytes(range(256)) * 100),
    "list": content("[1, 2]"),
    "number": content("3"),
    "null": content("null"),
    "text": content('"running"'),
    "deep": deep,
    "deep within": deep_within,
    "huge": huge,
    "huge number": content('{"epoch": ' + "9" * 4000 + "}"),
    "too huge number": content('{"epoch": ' + "9" * 5000 + "}"),
    "NaN": content('{"epoch": NaN, "iter": Infinity, "seconds": NaN, "started": NaN}'),
    "spelled": summary(epoch="NaN", iter="Infinity", seconds="-Infinity"),
    "counts": summary(epoch=[1], iter={"a": 1}, seconds="long", best=[1]),
    "best": summary(best={"val/x": {"value": "NaN", "epoch": []}}),
    "best list": summary(best={"val/x": [1, 2]}),
    "times": summary(started=1e300, ended=-1e300, written=1e17, seconds=1e17),
    "years": summary(started="0001-01-01T00:00:00", ended="9999-12-31T23:59:59+00:00"),
    "words": summary(started="yesterday", ended=["now"], status={"a": "b"}, reason=[1] * 1000),
    "codes": summary(status="\x1b[31mred", reason="\x1b]0;title\x07\r\n\u202e"),
    "disabled": summary(disabled=[1, "a", {"hook": ["x"]}, None]),
    "long": summary(reason="x" * 1_000_000),
    "directory": lambda path: (path / "summary.json").mkdir(),
    "directory of metrics": lambda path: (path / "metrics.jsonl").mkdir(),
    "pipe": lambda path: os.mkfifo(path / "summary.json"),
    "pipe of metrics": lambda path: os.mkfifo(path / "metrics.jsonl"),
    "pipe as lock": lambda path: os.mkfifo(path / LOCK),
    "directory as lock": lambda path: (path / LOCK).mkdir(),
    "loop": loop,
    "loop as lock": lambda path: (path / LOCK).symlink_to(LOCK),
    "nowhere": lambda path: (path / "summary.json").symlink_to("missing"),
    "device": lambda path: (path / "summary.json").symlink_to("/dev/zero"),
    "devices": lambda path: (path / "metrics.jsonl").symlink_to("/dev/zero"),
    "socket": bound,
    "lock": content(b"\xff\x00process -1 on \x1b[31m", LOCK),
    "lock of all": content("process 0 on " + socket.gethostname(), LOCK),
    "lock of many": content("process 99999999999999999999 on " + socket.gethostname(), LOCK),
    "metrics": content(b"\xff\xfe\n[1]\n3\n{\n" + b"x" * 200_000 + b"\n", "metrics.jsonl"),
    "deep metrics": content("[" * 60_000 + "\n", "metrics.jsonl"),
    "times of metrics": content('{"time": "x", "iter": [], "epoch": NaN}\n', "metrics.jsonl"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_run_that_cannot_be_read_hides_no_other(tmp_path: Path, name: str) -> None:
    make(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    HOSTILE[name](tmp_path / "bad")
    runs = {run.name: run for run in list_runs(tmp_path)}
    assert runs.keys() == {"bad", "good"}
    assert runs["good"].status == "completed"


def test_names_of_any_kind_are_found(tmp_path: Path) -> None:
    names = ["with\nline", "\x1b[31m", "-rf", " ", "漢字", os.fsdecode(b"\xff\xfe"), "a" * 255]
    for name in names:
        make(tmp_path / name)
    (tmp_path / "up").symlink_to(tmp_path)
    assert {run.name for run in list_runs(tmp_path)} == set(names)


@forking
def test_a_directory_that_may_not_be_looked_into_is_listed_as_that(tmp_path: Path) -> None:
    make(tmp_path / "good")
    make(tmp_path / "file").summary_file.chmod(0)
    (tmp_path / "closed" / "inside").mkdir(parents=True)
    (tmp_path / "closed").chmod(0)
    tmp_path.chmod(0o755)
    pid = os.fork()
    if pid == 0:  # As somebody who is not allowed everything, as root is.
        code = 2
        try:
            if os.getuid() == 0:
                for parent in tmp_path.parents:
                    parent.chmod(parent.stat().st_mode | 0o055)
                os.setuid(65534)
            found = [(run.name, run.status, run.reason) for run in list_runs(tmp_path)]
            right = [
                ("closed", "unreadable", "Permission denied"),
                ("file", "unreadable", "Permission denied"),
            ]
            code = 0 if found[:2] == right and found[2][1] == "completed" else 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    (tmp_path / "closed").chmod(0o755)
    assert code == 0


def test_a_file_of_metrics_of_any_size_is_not_read_through(tmp_path: Path) -> None:
    with (tmp_path / "metrics.jsonl").open("wb") as file:
        file.truncate(100_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"iter": 5, "epoch": 2}\n{"iter": 9')
    (run,) = list_runs(tmp_path)
    assert (run.iters, run.epochs) == (5, 2)


def test_a_directory_without_runs_has_none(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    assert list_runs(tmp_path / "missing") == []


def test_a_loss_is_shown_when_nothing_else_was_measured(tmp_path: Path) -> None:
    run = summarize(make(tmp_path, best={"val/loss": {"value": 0.1, "iter": 2, "epoch": 1}}))
    assert run.best == Best("val/loss", 0.1, 1, 2)


def test_the_best_to_show_is_that_of_the_main_metric(tmp_path: Path) -> None:
    watched = summarize(make(tmp_path / "a", main_metric="val/loss"))
    assert watched.best == Best("val/loss", 0.1, 1, 20)
    # Without a value, or from a damaged file, it is as if there were none.
    for other in ("val/zebra", 3, ["val/loss"], None):
        run = summarize(make(tmp_path / f"b{other!r}".replace("/", "_"), main_metric=other))
        assert run.best == Best("val/accuracy", 0.98, 2, 40)
