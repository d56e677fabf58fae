import os
import subprocess
import sys

import pytest

from hookloop.errors import ConfigError, DataError, Problem
from hookloop.parallel import launched
from hookloop.parallel.failure import PeerFailed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The directory of the reports of a launcher, which this process takes for its parent."""
    monkeypatch.setattr(launched, "_own", None)
    monkeypatch.setattr(launched, "end_with", lambda parent: None)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv(launched.LAUNCH, f"{os.getppid()}:{tmp_path}")
    return tmp_path


@pytest.fixture
def report(folder):
    launched.join_launcher()
    return lambda: launched.read_reports(folder)[2]


def test_without_a_launcher_nothing_is_reported(tmp_path, monkeypatch):
    monkeypatch.delenv(launched.LAUNCH, raising=False)
    monkeypatch.setenv(launched.RESTART, "2")  # Of a launcher further up.
    launched.join_launcher()
    launched.report_iteration(3)
    assert launched.report_end(143) == 143
    assert not launched.report_failure(ValueError("x"), 1)
    assert launched.restarts_so_far() == 0


def test_a_rank_reports_its_process_first(report, monkeypatch):
    assert report() == launched.Report(2, os.getpid())
    assert launched.LAUNCH not in os.environ
    monkeypatch.setenv(launched.RESTART, "2")
    assert launched.restarts_so_far() == 2


def test_an_end_in_order_is_no_failure_for_the_launcher_of_torch(report):
    assert launched.report_end(143) == 0
    assert (report().exit_code, report().is_in_order, report().blame) == (143, True, "")


def test_an_exception_is_reported_with_its_place(report):
    launched.report_iteration(7)
    with pytest.raises(ValueError, match="bad sample") as caught:
        raise ValueError("bad sample 17")
    assert launched.report_failure(caught.value, 1)
    assert launched.report_end(1) == 1
    failed = report()
    assert (failed.exit_code, failed.is_in_order, failed.iteration) == (1, False, 7)
    assert (failed.blame, failed.error) == ("own", "ValueError")
    assert failed.messages == ("ValueError: bad sample 17",)
    assert "test_launched.py" in failed.traceback


def test_what_the_user_has_to_fix_is_reported_line_by_line(report):
    problems = [Problem("no such key", "a.yaml:3"), Problem("no such type", "a.yaml:4")]
    launched.report_failure(ConfigError(problems), 2)
    assert report().blame == "user"
    assert report().error == "hookloop.errors.ConfigError"
    assert report().messages == ("a.yaml:3: no such key", "a.yaml:4: no such type")


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (PeerFailed("rank 1 failed in iteration 3: ValueError: x"), "peer"),
        (
            RuntimeError("[../gloo/transport/tcp/pair.cc:547] Connection closed by peer"),
            "connection",
        ),
        (RuntimeError("NCCL error: unhandled system error"), "connection"),
        (RuntimeError("shapes do not fit"), "own"),
        (OSError("gloo"), "own"),
        (DataError("no samples"), "user"),
    ],
)
def test_broken_connections_are_told_from_other_failures(report, error, blame):
    launched.report_failure(error, 1)
    assert report().blame == blame


def test_an_error_inside_of_torch_distributed_is_a_lost_connection():
    from torch.distributed.distributed_c10d import _get_default_group

    with pytest.raises(ValueError, match="has not been initialized") as caught:
        _get_default_group()
    lost = RuntimeError("Timed out").with_traceback(caught.tb)
    assert launched.is_lost_connection(lost)
    assert not launched.is_lost_connection(RuntimeError("Timed out"))


def test_a_directory_that_is_gone_is_no_failure(report, folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert launched.report_end(0) == 0


@pytest.mark.slow
def test_a_process_whose_launcher_has_ended_meanwhile_ends(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    code = "from hookloop.parallel import launched; launched.join_launcher(); print('alive')"
    environment = {**os.environ, launched.LAUNCH: f"{gone.pid}:{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
