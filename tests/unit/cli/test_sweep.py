"""``hookloop sweep``: what it rejects, prints and leaves behind."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke

from hookloop.cli.search.sweep import _show
from hookloop.cli.search.sweep_study import Study
from hookloop.runs.lock import LOCK, RunLock
from hookloop.runs.reader import list_runs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["max_epochs=1"], "there is nothing to vary"),
        (["optimizer.lr=log(1,2)"], "how many trials are to be made?"),
        (["optimizer.lr=log(1,2)", "--sampler", "grid"], "give a list"),
        (["optimizer.lrr=[1,2]", "--trials", "2"], "lrr"),
        (["optimizer.lr=[1,2]", "--trials", "2", "--metric", "val/zebra"], "--mode max"),
    ],
)
def test_what_cannot_work_is_rejected_before_any_trial(project, invoke, words, message):
    result = invoke("sweep", "config.yaml", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (project / "runs").exists()


@pytest.mark.slow
def test_a_sweep_finds_the_best_and_can_be_made_longer(project: Path, invoke: Invoke) -> None:
    words = ["sweep", "config.yaml", "optimizer.lr=[0.001,0.1]", "--sampler", "grid"]
    result = invoke(*words, "--jobs", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["dir"] == "runs/config_sweep"
    assert [one["state"] for one in found["trials"]] == ["complete", "complete"]
    best = found["trials"][found["best"]]
    assert best["params"] == {"optimizer.lr": 0.1}
    assert (project / "runs/config_sweep" / best["run"] / "summary.json").is_file()
    again = invoke(*words)
    assert again.exit_code == 0
    assert again.stdout.splitlines()[-1] == (
        f"best: runs/config_sweep/{best['run']}  optimizer.lr=0.1"
    )
    other = invoke("sweep", "config.yaml", "optimizer.lr=[1,2]", "--sampler", "grid")
    assert other.exit_code == 2
    assert "holds another sweep, which differs in space" in other.stderr


def test_a_sweep_that_is_killed_at_its_start_is_not_taken_for_a_run(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_and_die(lock: RunLock) -> None:
        take(lock)
        raise RuntimeError("killed here")

    take = RunLock.take
    monkeypatch.setattr(RunLock, "take", take_and_die)
    result = invoke("sweep", "config.yaml", "optimizer.lr=[1,2]", "--sampler", "grid")
    assert result.exit_code == 1 and "killed here" in result.stderr
    assert (project / "runs/config_sweep" / LOCK).is_file()
    assert list_runs(project / "runs") == []


@pytest.mark.parametrize(("values", "warns"), [([1.0, 1.0], True), ([1.0, 2.0], False)])
def test_folds_that_do_not_differ_are_reported(tmp_path, capsys, values, warns):
    study = Study(tmp_path, {}, rule="less")
    study.complete(study.ask().number, values)
    _show(study, "val/loss")
    assert ("all folds have the same value" in capsys.readouterr().err) is warns
