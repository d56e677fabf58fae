"""``hookloop train``: exit codes, the last line, and which run is resumed."""

import json
from pathlib import Path

from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke


def test_a_training_ends_with_one_line_and_tests_the_model(project: Path, invoke: Invoke) -> None:
    result = invoke("train", "config.yaml", "--run-dir", "runs/a")
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert last.startswith("completed: runs/a  train_epoch/loss ")
    assert "val/loss" in last
    assert "test/loss" in last
    assert (project / f"runs/a/{epoch_file(2)}").is_file()


def test_overrides_win_over_the_file(project: Path, invoke: Invoke) -> None:
    assert invoke("train", "config.yaml", "max_epochs=1", "--run-dir", "runs/a").exit_code == 0
    assert json.loads((project / "runs/a/summary.json").read_text())["epoch"] == 1


def test_resume_continues_the_newest_run_of_the_same_config(project: Path, invoke: Invoke) -> None:
    assert invoke("train", "config.yaml", "--run-dir", "runs/a").exit_code == 0
    assert invoke("train", "config.yaml", "seed=1", "--run-dir", "runs/b").exit_code == 0
    result = invoke("train", "config.yaml", "--resume")
    assert result.exit_code == 0, result.output
    assert "runs/a" in result.stdout.splitlines()[-1]


def test_without_such_a_run_resume_is_rejected(project: Path, invoke: Invoke) -> None:
    assert invoke("train", "config.yaml", "--run-dir", "runs/a").exit_code == 0
    result = invoke("train", "config.yaml", "seed=7", "--resume")
    assert result.exit_code == 2
    assert "there is no run of this config under 'runs' to resume: name it with" in result.stderr


def test_a_python_config_among_the_runs_is_not_executed(project: Path, invoke: Invoke) -> None:
    run = project / "runs" / "foreign"
    run.mkdir(parents=True)
    (run / "summary.json").write_text("{}")
    (run / "config.yaml").write_text("_base_: evil.py\n")
    (run / "evil.py").write_text("open('was_run', 'w')\n")
    result = invoke("train", "config.yaml", "--resume")
    assert result.exit_code == 2
    assert "'runs/foreign' is skipped: " in result.stderr
    assert not (project / "was_run").exists()


def test_a_hook_that_was_left_out_changes_the_exit_code_if_wanted(
    project: Path, invoke: Invoke
) -> None:
    (project / "cli_failing.py").write_text(
        "from hookloop import Hook\n"
        "class Fail(Hook):\n"
        "    on_error = 'disable'\n"
        "    def after_train_iter(self, run):\n"
        "        raise OSError('gone')\n"
    )
    failing = ["hooks=[cli_failing.Fail]", "max_epochs=1"]
    assert invoke("train", "config.yaml", *failing, "--run-dir", "runs/a").exit_code == 0
    assert (
        invoke("train", "config.yaml", *failing, "--run-dir", "runs/b", "--strict").exit_code == 3
    )
