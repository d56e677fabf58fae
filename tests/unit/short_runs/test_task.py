"""Trainings in processes of their own: their task, and how their failure is shown."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hookloop.short_runs.task import Trials, failure_of


def make(folder: Path, iters: int, aliases: Sequence[str] = ()) -> Trials:
    return Trials(folder, Path("config.yaml"), ("a=1",), iters, aliases)


@pytest.mark.parametrize(("iters", "every"), [(1, 1), (8, 2), (40, 5)])
def test_saves_are_frequent_but_not_too_frequent(tmp_path: Path, iters: int, every: int) -> None:
    assert make(tmp_path, iters).settings["every"] == every


@pytest.mark.slow
def test_the_task_reaches_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "echo_task.py").write_text("import sys\nprint(sys.argv[1])\n")
    monkeypatch.chdir(tmp_path)
    trials = make(tmp_path, 40, ("mmengine",))
    done = trials.start("echo_task", "killed", {"kill": None})
    assert json.loads(done.stdout) == {
        "config": "config.yaml",
        "overrides": ["a=1"],
        "aliases": ["mmengine"],
        "iters": 40,
        "every": 5,
        "run_dir": str(tmp_path / "killed"),
        "kill": None,
    }


def test_a_failure_shows_the_end_of_the_output() -> None:
    output = "\n".join(f"line {number}" for number in range(50))
    error = failure_of(subprocess.CompletedProcess([sys.executable], 7, output))
    lines = str(error).splitlines()
    assert lines[0] == "The training ended with exit code 7:"
    assert lines[1:] == [f"line {number}" for number in range(30, 50)]
