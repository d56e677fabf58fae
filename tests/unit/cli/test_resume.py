"""``hookloop resume``: a run continues with its own config, or with the user's."""

import json
from pathlib import Path

import pytest
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
    result = invoke("resume", "runs/a/epoch_1.pth", "max_epochs=2")
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
