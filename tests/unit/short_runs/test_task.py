"""Trainings in processes of their own: their task, their result, and what is left of them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookloop.short_runs.task import KILLED, Ended, TrainingTask, run_task

WORK = """
import os, signal, subprocess, sys
from hookloop.short_runs.task import work_on

def work(task):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("child", child.pid, "of", os.getpid(), flush=True)
    if task.work == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task.work == "fail":
        raise ValueError("the work failed")
    if task.work == "wait":
        child.wait()
    return {"iters": task.iters, "options": task.options}

if __name__ == "__main__":
    work_on("some_work", work)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "some_work.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def task_of(work: str, folder: Path) -> TrainingTask:
    run_dir = str(folder / "run")
    return TrainingTask(work, "a.yaml", ("a=1",), ("mmengine",), run_dir, 7, 1, {"every": 2})


def is_running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.is_file() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def ends(pid: int) -> bool:
    until = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(pid)


@pytest.mark.slow
@pytest.mark.parametrize(("work", "code"), [("return", 0), ("fail", 1), ("die", KILLED)])
def test_what_a_process_found_is_returned_and_nothing_of_it_runs_on(
    folder: Path, work: str, code: int
) -> None:
    ended = run_task("some_work", task_of(work, folder))
    assert ended.code == code, ended.output
    assert ended.result == ({"iters": 7, "options": {"every": 2}} if code == 0 else None)
    assert ends(int(ended.output.split()[1]))
    if work == "fail":
        assert "ValueError: the work failed" in str(ended.failure)


@pytest.mark.slow
def test_a_task_ends_with_the_process_that_waits_for_it(folder: Path) -> None:
    task = task_of("wait", folder)
    fields = [task.work, task.config, [], [], task.run_dir, 7]
    code = (
        "from hookloop.short_runs.task import TrainingTask, run_task\n"
        f"run_task('some_work', TrainingTask(*{json.dumps(fields)}))"
    )
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ}) as waiting:
        said = folder / "run.log"
        until = time.monotonic() + 60
        while not (said.is_file() and said.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        _, child, _, own = said.read_text().split()
        waiting.kill()
    assert ends(int(own))
    os.kill(int(child), 9)


def test_a_failure_shows_the_end_of_the_output() -> None:
    output = "\n".join(f"line {number}" for number in range(50))
    lines = str(Ended(7, output).failure).splitlines()
    assert lines[0] == "The training ended with exit code 7:"
    assert lines[1:] == [f"line {number}" for number in range(30, 50)]
