"""One trial of a sweep, in this process."""

from pathlib import Path

import pytest

from hookloop.cli.search.sweep_process import train_trial
from hookloop.cli.search.sweep_space import split
from hookloop.cli.search.sweep_study import Study
from hookloop.errors import HookloopError

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def task(project: Path, trial, **changes):
    return {
        "folder": str(project / "sweep"),
        "config": "config.yaml",
        "overrides": [],
        "metric": "val/loss",
        "rule": "less",
        "pruner": "none",
        "folds": None,
        "number": trial.number,
        "name": trial.name,
        "chosen": dict(trial.chosen),
        **changes,
    }


@pytest.fixture
def study(project: Path) -> Study:
    (project / "sweep").mkdir()
    return Study(project / "sweep", split(["optimizer.lr=[0.01,0.1]"])[0], rule="less", seed=0)


def test_a_trial_is_a_run_whose_best_value_counts(project: Path, study: Study) -> None:
    assert train_trial(task(project, study.ask())) == 0
    (trial,) = study.trials()
    run = project / "sweep" / "trial_0000"
    lines = [
        line for line in (run / "metrics.jsonl").read_text().splitlines() if "val/loss" in line
    ]
    assert trial.state == "complete"
    assert f'"val/loss": {trial.value}' in "\n".join(lines)
    assert f"lr: {trial.chosen['optimizer.lr']}" in (run / "config.yaml").read_text()


def test_each_fold_is_a_run_and_their_mean_counts(project: Path, study: Study) -> None:
    train_trial(task(project, study.ask(), folds=["val_data.seed", 3]))
    (trial,) = study.trials()
    assert sorted(path.name for path in (project / "sweep/trial_0000").iterdir()) == [
        "fold_0", "fold_1", "fold_2",
    ]  # fmt: skip
    assert trial.deviation is not None
    assert trial.deviation > 0


def test_a_trial_that_falls_behind_is_pruned(project: Path, study: Study) -> None:
    for _ in range(6):  # The median pruner compares with five at least.
        number = study.ask().number
        study.optuna_trial(number).report(0.0, 4)
        study.complete(number, [0.0])
    train_trial(task(project, study.ask(), pruner="median"))
    assert study.trials()[-1].state == "pruned"


def test_a_metric_that_nobody_computes_is_rejected(project: Path, study: Study) -> None:
    with pytest.raises(HookloopError, match="val/acuracy"):
        train_trial(task(project, study.ask(), metric="val/acuracy", rule="greater"))
