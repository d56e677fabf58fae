"""The trials of a sweep, in a journal that outlives its process."""

import json
from pathlib import Path

import pytest

from hookloop.cli.search.sweep_space import split
from hookloop.cli.search.sweep_study import JOURNAL, Study
from hookloop.runs.reader import SWEEP

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

SPACE, _ = split(["lr=log(1e-4,1e-2)", "width=[32,64]", "layers=int(1,3)"])


def test_a_study_continues_from_its_journal(tmp_path: Path) -> None:
    first = Study(tmp_path, SPACE, rule="less", seed=0)
    done, left = first.ask(), first.ask()
    first.complete(done.number, [0.5])
    assert (tmp_path / JOURNAL).is_file()
    again = Study(tmp_path, SPACE, rule="less", seed=0)
    assert [(one.number, one.state) for one in again.trials()] == [(0, "complete"), (1, "running")]
    assert again.trials()[1].chosen == left.chosen
    assert 1e-4 <= left.chosen["lr"] <= 1e-2
    assert left.chosen["width"] in (32, 64)


@pytest.mark.parametrize(("rule", "best"), [("less", 0), ("greater", 1)])
def test_the_best_follows_the_rule_and_ignores_what_failed(tmp_path, rule, best):
    study = Study(tmp_path, SPACE, rule=rule)
    for values in ([1.0], [2.0]):
        study.complete(study.ask().number, values)
    study.fail(study.ask().number, "exit code 1: no")
    found = study.best()
    assert found is not None
    assert found.number == best
    assert study.trials()[2].problem == "exit code 1: no"


def test_folds_have_a_mean_and_a_deviation(tmp_path: Path) -> None:
    study = Study(tmp_path, {}, rule="less")
    study.complete(study.ask().number, [1.0, 2.0, 3.0])
    (trial,) = study.trials()
    assert trial.value == 2.0
    assert trial.deviation == pytest.approx(1.0)


def test_a_pruned_trial_has_no_value(tmp_path: Path) -> None:
    study = Study(tmp_path, SPACE, rule="less", pruner="median")
    number = study.ask().number
    study.optuna_trial(number).report(3.0, 1)
    study.prune(number)
    assert [(one.state, one.value) for one in study.trials()] == [("pruned", None)]
    assert study.best() is None


def test_the_summary_is_read_without_optuna(tmp_path: Path) -> None:
    study = Study(tmp_path, SPACE, rule="less")
    study.complete(study.ask().number, [float("inf")])
    study.write_summary({"metric": "val/loss"})
    summary = json.loads((tmp_path / SWEEP).read_text())
    assert summary["metric"] == "val/loss"
    assert summary["trials"][0]["run"] == "trial_0000"
    assert sorted(summary["trials"][0]["params"]) == ["layers", "lr", "width"]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "random", "grid", "qmc"])
def test_a_sweep_that_is_continued_chooses_what_it_would_have_chosen(tmp_path, sampler):
    def choose(folder: Path, *parts: int) -> list[object]:
        folder.mkdir()
        space, _ = (
            split(["lr=[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8]"]) if sampler == "grid" else (SPACE, None)
        )
        for part in parts:
            study = Study(folder, space, rule="less", sampler=sampler, seed=0)
            for _ in range(part):
                study.complete(study.ask().number, [1.0])
        return [dict(one.chosen) for one in study.trials()]

    whole = choose(tmp_path / "whole", 6)
    assert len({str(one) for one in whole}) == 6
    continued = choose(tmp_path / "continued", 2, 1, 3)
    assert len({str(one) for one in continued}) == 6
    if sampler != "grid":  # Optuna picks any of the points of a grid that are left.
        assert continued == whole
