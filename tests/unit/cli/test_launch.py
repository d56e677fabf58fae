"""``--ranks``: exit codes, restarts, and options that do not fit together."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke

from hookloop.cli.train.launch import Launch, Restarts, orderly_code
from hookloop.parallel.launch import Ended
from hookloop.parallel.launched import Report
from hookloop.parallel.processes import Starter
from hookloop.parallel.rendezvous import Layout

RANK = """
import os, signal, sys, time
from hookloop.errors import DataError
from hookloop.parallel import launched

rank = int(os.environ["RANK"])
launched.join_launcher()
attempt = launched.restarts_so_far()


def fail(error, iteration, code=1):
    launched.report_iteration(iteration)
    launched.report_failure(error, code)
    sys.exit(code)


def end(code=0):
    sys.exit(launched.report_end(code))


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def wait():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        time.sleep(1)
"""


@pytest.fixture
def launch(tmp_path, capfd):
    """Run a script on two ranks; return the exit code and what was shown."""

    def run(body: str, restarts: int = 0, **options: float) -> tuple[int, str]:
        (tmp_path / "rank.py").write_text(RANK + body)
        folder = tmp_path / "launch"
        folder.mkdir()
        layout = Layout(**{"ranks": 2, **options})
        code = Restarts([str(tmp_path / "rank.py")], layout, folder, restarts, Starter()).run()
        return code, capfd.readouterr().err

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("codes", "code"), [((0, 0), 0), ((3, 0), 3), ((143, 143), 143)])
def test_the_exit_code_is_that_of_a_process_alone(launch, codes, code) -> None:
    assert launch(f"end({codes}[rank])") == (code, "")


@pytest.mark.slow
def test_a_lost_rank_is_followed_by_a_restart_as_often_as_allowed(launch) -> None:
    body = "end() if attempt == 2 else kill() if rank == 1 else wait()"
    code, shown = launch(body, 3)
    assert code == 0
    assert shown.count("error: rank 1 was killed by SIGKILL") == 2
    assert "All ranks are started again; restarts left: 2." in shown
    assert "All ranks are started again; restarts left: 1." in shown


@pytest.mark.slow
def test_those_that_are_left_continue(launch) -> None:
    body = """
size = int(os.environ["WORLD_SIZE"])
assert int(os.environ["LOCAL_WORLD_SIZE"]) == size == (3, 2, 1, 1)[attempt]
end() if attempt == 3 else kill() if rank == size - 1 else wait()
"""
    code, shown = launch(body, 3, ranks=3, least_ranks=1, grow_after=600.0)
    assert code == 0
    assert [line for line in shown.splitlines() if "error" not in line] == [
        "All ranks are started again; restarts left: 2.",
        "2 ranks here; 3 again after 600 s.",
        "All ranks are started again; restarts left: 1.",
        "1 rank here; 3 again after 600 s.",
        "All ranks are started again; restarts left: 0.",
    ]


@pytest.mark.slow
def test_there_are_more_ranks_again_after_a_while(launch) -> None:
    body = """
assert int(os.environ["WORLD_SIZE"]) == (3, 2, 3)[attempt]
received = []
signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
while attempt == 1 and not received:
    time.sleep(0.01)
kill() if attempt == 0 and rank == 1 else end(143 if attempt == 1 else 0)
"""
    code, shown = launch(body, 1, ranks=3, least_ranks=1, grow_after=1.0)
    assert code == 0
    assert [line for line in shown.splitlines() if "error" not in line] == [
        "All ranks are started again; restarts left: 0.",
        "2 ranks here; 3 again after 1 s.",
        "All ranks are started again, 3 ranks here.",  # Which is no restart.
    ]


@pytest.mark.slow
def test_after_the_last_restart_it_has_failed(launch) -> None:
    code, shown = launch("kill() if rank == 1 else wait()", 1)
    assert code == 1
    assert shown.count("was killed by SIGKILL") == 2
    assert shown.endswith("No restart is left.\n")


@pytest.mark.slow
def test_the_same_exception_in_the_same_iteration_is_not_tried_a_third_time(launch) -> None:
    body = "fail(ValueError('bad'), (7, 8, 8)[attempt]) if rank == 1 else wait()"
    code, shown = launch(body, 5)
    assert code == 1
    assert shown.count("rank 1 failed in iteration 7: ValueError: bad") == 1
    assert shown.count("rank 1 failed in iteration 8: ValueError: bad") == 2
    assert shown.endswith("It failed there before, so it is not started again.\n")


@pytest.mark.slow
def test_a_user_error_is_shown_once_and_never_tried_again(launch) -> None:
    code, shown = launch("fail(DataError('no samples'), 0, 2)", 5)
    # Both ranks have it; the first one to report is shown.
    assert code == 2
    assert shown in ("error: no samples\n", "error: rank 1: no samples\n")


@pytest.mark.slow
def test_a_signal_before_the_training_ends_all_as_it_would_end_one(launch, tmp_path) -> None:
    def send():
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("launch/*/rank-*.json"))) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=send)
    sender.start()
    assert launch("wait()", 5) == (143, "")
    sender.join()


def test_only_ranks_that_all_end_in_order_have_an_orderly_code() -> None:
    done, late = Report(0, 1, 0, True), Report(1, 2)
    assert orderly_code(Ended({0: done})) == 0
    assert orderly_code(Ended({0: done, 1: late})) is None
    assert orderly_code(Ended({0: done}, {1: -9})) is None
    assert orderly_code(Ended()) is None


def test_options_that_need_ranks_are_rejected_without_them(invoke: Invoke) -> None:
    options = (
        ["--grow-after", "9"],
        ["--nodes", "2"],
        ["--rendezvous", "a:1"],
        ["--restarts", "1"],
        ["--patience", "9"],
    )
    for option in options:
        result = invoke("train", "config.yaml", *option)
        assert result.exit_code == 2
        assert f"{option[0]} needs --ranks N, the processes on each node." in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ranks", "4..2"], "'4..2' is not a number, or a range such as 2..4."),
        (["--ranks", "1..2"], "a range of --ranks or --nodes needs --restarts N"),
        (["--patience", "soon"], "'soon' is not a time: write seconds, or as in '15 min'."),
        (["--patience", "3 epochs"], "'3 epochs' is not a time"),
        (["--nodes", "2"], "--nodes needs --rendezvous HOST:PORT: a free port of one of the nodes"),
        (["--nodes", "2", "--rendezvous", "gpu1"], "'gpu1' must be HOST:PORT, as in gpu1:29500."),
        (
            ["--nodes", "2", "--rendezvous", "a:1", "--restarts", "1"],
            "--restarts on several nodes needs --run-dir, a directory that all of them see",
        ),
    ],
)
def test_options_that_do_not_fit_are_rejected(invoke: Invoke, options, message) -> None:
    result = invoke("train", "config.yaml", "--ranks", "2", *options)
    assert result.exit_code == 2
    assert message in result.output


def test_a_step_of_slurm_knows_where_its_nodes_meet(monkeypatch) -> None:
    variables = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    variables |= {"SLURM_STEP_NODELIST": "gpu[3-4]", "SLURM_JOB_ID": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Launch(4, nodes=2).layout() == Layout(4, 2, "gpu3:15031")


def test_a_rank_does_not_start_ranks(invoke: Invoke, monkeypatch) -> None:
    monkeypatch.setenv("RANK", "0")
    result = invoke("train", "config.yaml", "--ranks", "2")
    assert result.exit_code == 2
    assert "this process is a rank already, because RANK=0 is set" in result.output


def test_a_config_with_errors_starts_no_rank(project: Path, invoke: Invoke) -> None:
    (project / "config.yaml").write_text("modle: 1\n")
    result = invoke("train", "config.yaml", "--ranks", "2")
    assert result.exit_code == 2
    assert "modle" in result.output
    assert not (project / "runs").exists()


def test_a_named_checkpoint_and_restarts_do_not_fit(project: Path, invoke: Invoke) -> None:
    assert invoke("train", "config.yaml", "--run-dir", "runs/a").exit_code == 0
    options = ["--ranks", "2", "--restarts", "1", "--checkpoint", f"runs/a/{epoch_file(1)}"]
    result = invoke("resume", "runs/a", *options)
    assert result.exit_code == 2
    assert "--restarts continues from the newest checkpoint, so that none" in result.output
