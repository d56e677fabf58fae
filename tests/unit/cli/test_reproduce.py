"""``hookloop reproduce``: the same bits again, with the sources that the run kept."""

import json
import sys
from pathlib import Path

import pytest
import torch
from tests.unit.cli.conftest import CONFIG, MODULE, Invoke


@pytest.fixture
def run(project: Path, invoke: Invoke) -> Path:
    (project / "config.yaml").write_text(CONFIG + "hooks: [SnapshotSource, WriteCSV]\n")
    result = invoke("train", "config.yaml", "--run-dir", "runs/a")
    assert result.exit_code == 0, result.output
    # The process that reproduces a run has not imported the module yet.
    sys.modules.pop("cli_project")
    return project / "runs/a"


def test_the_sources_of_the_run_give_the_same_bits(
    run: Path, invoke: Invoke, project: Path
) -> None:
    (project / "cli_project.py").write_text("raise RuntimeError('the code of today')\n")
    result = invoke("reproduce", "runs/a", "--trust", "--run-dir", "runs/b")
    assert result.exit_code == 0, result.output
    assert "environment: as far as it is known, the same." in result.stdout
    assert "sources: 2 files of runs/a/source.zip" in result.stdout
    assert [one.name for one in (project / "runs/b").glob("*.csv")], "in its own directory"
    assert "equal: all 6 numbers up to iteration 8 are the same bits." in result.stdout
    assert (project / "runs/b/source/cli_project.py").read_text() == MODULE


def test_other_code_differs_and_the_first_difference_is_shown(
    run: Path, invoke: Invoke, project: Path
) -> None:
    (project / "cli_project.py").write_text(MODULE.replace("manual_seed(seed)", "manual_seed(9)"))
    result = invoke("reproduce", "runs/a", "--no-sources", "--iters", "4", "--json")
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["equal"] is False
    assert found["environment"] == []
    assert (found["compared"], found["different"], found["last_iter"]) == (2, 2, 4)
    assert found["differences"][0]["name"] == "train_epoch/loss"


@pytest.mark.parametrize("iters", [4, 8])
def test_json_for_other_programs(run: Path, invoke: Invoke, iters: int) -> None:
    result = invoke(
        "reproduce", "runs/a", "--trust", "--json", "--iters", str(iters), "--run-dir", "runs/b"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["equal"], found["last_iter"], found["notes"]) == (True, iters, [])
    assert found["run_dir"] == "runs/b"


def test_code_of_a_run_is_not_run_without_a_word(run: Path, invoke: Invoke, project: Path) -> None:
    result = invoke("reproduce", "runs/a")
    assert result.exit_code == 2
    assert "is code, which would be run: say --trust" in result.stderr
    assert [one.name for one in (project / "runs").iterdir()] == ["a"]


def test_what_cannot_be_repeated_is_said(run: Path, invoke: Invoke) -> None:
    written = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(written.replace("seed: 0\n", "", 1))
    summary = json.loads((run / "summary.json").read_text())
    change = {"key": "optimizer.lr", "old": 1, "new": 2, "iter": 3}
    (run / "summary.json").write_text(json.dumps(summary | {"ranks": 2, "changes": [change]}))
    (run / "environment.json").unlink()
    torch.manual_seed(5)
    result = invoke("reproduce", "runs/a", "--no-sources", "--run-dir", "runs/b")
    assert result.exit_code == 1
    for note in (
        "had no seed",
        "trained on 2 ranks",
        "optimizer.lr was changed from 1 to 2",
        "is not known",
    ):
        assert note in result.stdout
    assert "numbers differ" in result.stderr
    assert "first: " in result.stderr


def test_only_a_run_of_a_config_can_be_reproduced(project: Path, invoke: Invoke) -> None:
    (project / "empty").mkdir()
    result = invoke("reproduce", "empty")
    assert result.exit_code == 2
    assert "'empty' is not a run to reproduce" in result.stderr
    (project / "empty" / "config.yaml").write_text(CONFIG)
    assert "nothing to compare with" in invoke("reproduce", "empty").stderr
    (project / "empty" / "metrics.jsonl").write_text("")
    assert "has no source.zip" in invoke("reproduce", "empty", "--sources").stderr
