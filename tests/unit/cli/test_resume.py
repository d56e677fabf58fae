"""``hookloop resume``: a run continues with its own config, or with the user's."""

import json
from pathlib import Path

import pytest
from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def run(project: Path, invoke: Invoke) -> Path:
    assert invoke("train", "config.yaml", "max_epochs=1", "--run-dir", "runs/a").exit_code == 0
    return project / "runs/a"


def epoch(run: Path) -> int:
    return int(json.loads((run / "summary.json").read_text())["epoch"])


def test_a_run_is_made_longer(run: Path, invoke: Invoke) -> None:
    result = invoke("resume", "runs/a", "max_epochs=3")
    assert result.exit_code == 0, result.output
    assert epoch(run) == 3


def test_a_single_checkpoint_is_resumed_in_its_directory(run: Path, invoke: Invoke) -> None:
    result = invoke("resume", f"runs/a/{epoch_file(1)}", "max_epochs=2")
    assert result.exit_code == 0, result.output
    assert epoch(run) == 2


def test_with_a_config_the_one_of_the_run_is_not_read(run: Path, invoke: Invoke) -> None:
    (run / "config.yaml").write_text("model: no_such_module.Net\n")
    assert invoke("resume", "runs/a", "max_epochs=2").exit_code == 2
    result = invoke("resume", "runs/a", "--config", "config.yaml", "max_epochs=2")
    assert result.exit_code == 0, result.output
    assert epoch(run) == 2


def test_a_directory_without_a_config_is_not_a_run(project: Path, invoke: Invoke) -> None:
    (project / "empty").mkdir()
    result = invoke("resume", "empty")
    assert result.exit_code == 2
    assert "'empty' is not a run to resume: give the directory of a run" in result.stderr


def test_a_setting_of_the_optimizer_is_changed_when_it_is_said(run: Path, invoke: Invoke) -> None:
    wanted = ("resume", "runs/a", "optimizer.lr=0.01", "max_epochs=2")
    refused = invoke(*wanted)
    assert refused.exit_code == 2
    assert "optimizer.lr: 0.1 -> 0.01. If the change is meant, say so: --change" in refused.stderr
    result = invoke(*wanted, "--change")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    summary = json.loads((run / "summary.json").read_text())
    assert [(one["key"], one["iter"]) for one in summary["changes"]] == [
        ("max_epochs", 4),
        ("optimizer.lr", 4),
    ]
    assert "lr: 0.01" in (run / "config.yaml").read_text()


def test_a_change_needs_a_value(run: Path, invoke: Invoke) -> None:
    result = invoke("resume", "runs/a", "--change")
    assert result.exit_code == 2
    assert "--change needs what to change" in result.output
