"""The timetable that a run writes: who acts where, what it cost, and how hooks stand."""

import json
from functools import partial

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_classifier, make_data, make_trainer

from hookloop import Hook
from hookloop.hooks import (
    AverageWeights,
    RecordHookTimes,
    SaveCheckpoint,
    StopOnPlateau,
    WriteMetrics,
)
from hookloop.hooks.writing import _timetable as module


class Draws(Hook):
    """Only observes, and draws random numbers."""

    seen: list

    def __init__(self):
        self.seen = []

    def after_train_iter(self, run):
        self.seen.append(float(torch.rand(())))


class Fails(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        raise RuntimeError("full")


class Adds(Hook):
    def before_train_iter(self, run):
        if run.progress.iter == 12:
            run._plan.add(Draws().named("late"))


def read(directory):
    return json.loads((directory / "hooks.json").read_text())


def cell(found, point, hook):
    (one,) = [one for one in found["cells"] if (one["point"], one["hook"]) == (point, hook)]
    return one


def train(directory, *hooks, epochs=15, **options):
    trainer = make_trainer(
        hooks=[WriteMetrics(), *hooks], run_dir=directory, max_epochs=epochs, **options
    )
    trainer.train()
    return trainer


def test_the_plan_is_written_with_what_a_few_iterations_cost(tmp_path):
    train(tmp_path / "run", Draws())
    found = read(tmp_path / "run")
    assert found["measured"]["text"] == "iterations 11 to 30" and found["measured"]["iters"] == 20
    assert found["points"][0] == "before_run"
    one = cell(found, "after_train_iter", "draws")
    assert one["calls"] == 20 and 0 < one["seconds"] < 20 * found["measured"]["iteration_seconds"]
    assert cell(found, "before_train", "write_metrics")["calls"] is None
    (hook,) = [one for one in found["hooks"] if one["name"] == "draws"]
    assert hook["type"] == "Draws" and (hook["priority"], hook["policy"], hook["ranks"]) == (
        50,
        "raise",
        "all",
    )


def test_the_calls_are_wrapped_in_these_iterations_only(tmp_path):
    wrapped = {}

    class Look(Hook):
        def after_train_iter(self, run):
            wrapped[run.progress.iter] = bool(run._plan._wrappers)

    train(tmp_path / "run", Look())
    assert wrapped[11] and wrapped[29] and not any(wrapped[at] for at in range(31, 46))


def test_observing_changes_no_bit(tmp_path, monkeypatch):
    drawn, models = [], []
    for name, skipped in (("with", 10), ("without", 10**9)):
        monkeypatch.setattr(module, "SKIPPED", skipped)
        hook = Draws()
        models.append(train(tmp_path / name, hook, seed=3).run.model)
        drawn.append(hook.seen)
    assert drawn[0] == drawn[1]
    assert_same_bits(*models)


def test_a_short_run_shows_what_it_has(tmp_path):
    train(tmp_path / "a", Draws(), epochs=5)
    found = read(tmp_path / "a")
    assert found["measured"]["text"] == "iterations 11 to 15"
    assert cell(found, "after_train_iter", "draws")["calls"] == 6  # That after the tenth, too.
    train(tmp_path / "b", Draws(), epochs=1)
    assert read(tmp_path / "b")["measured"] is None


def test_a_resume_measures_again_and_keeps_the_earlier_until_then(tmp_path):
    make = partial(make_trainer, run_dir=tmp_path / "run")
    make(hooks=[WriteMetrics(), SaveCheckpoint(), Draws()], max_epochs=12).train()
    make(hooks=[WriteMetrics(), SaveCheckpoint(), Draws()], max_epochs=14, resume=True).train()
    assert read(tmp_path / "run")["measured"]["text"] == "iterations 11 to 30"
    make(hooks=[WriteMetrics(), SaveCheckpoint(), Draws()], max_epochs=30, resume=True).train()
    assert read(tmp_path / "run")["measured"]["text"] == "iterations 53 to 72"


def test_hooks_that_come_and_go_are_listed(tmp_path):
    train(tmp_path / "run", Fails(), Adds())
    found = read(tmp_path / "run")
    names = [one["name"] for one in found["hooks"]]
    assert "fails" in names and "late" in names
    assert cell(found, "after_train_iter", "late")["calls"] > 10


def test_all_iterations_count_where_hooks_are_timed_anyway(tmp_path):
    train(tmp_path / "run", Draws(), RecordHookTimes())
    found = read(tmp_path / "run")
    assert found["measured"]["text"] == "all iterations" and found["measured"]["iters"] == 45
    assert cell(found, "after_train_iter", "draws")["calls"] == 45


def test_hooks_tell_what_they_are_at(tmp_path):
    class Odd(Hook):
        def describe(self, run):
            raise KeyError("oops")

    hooks = [
        WriteMetrics(),
        StopOnPlateau("val/loss", patience=3),
        AverageWeights(),
        SaveCheckpoint(best="accuracy"),
        Odd(),
    ]
    make_classifier(hooks=hooks, run_dir=tmp_path / "run", max_epochs=2).train()
    states = {one["name"]: one["state"] for one in read(tmp_path / "run")["hooks"]}
    assert states["stop_on_plateau"]["waited"] == "0 of 3" and states["average_weights"] == {
        "updates": 6
    }
    assert states["save_checkpoint"]["last_save"] == "iteration 6"
    assert "best accuracy" in states["save_checkpoint"] and states["odd"] == {
        "problem": "KeyError: 'oops'"
    }
    assert states["write_metrics"] is None
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["total_iters"], summary["total_epochs"], summary["batch_size"]) == (6, 2, 4)
    assert summary["main_metric"] == "val/accuracy"


def test_what_hooks_are_at_is_kept_up_within_an_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SELDOM", 0.0)
    seen = []

    class Tells(Hook):
        def describe(self, run):
            return {"at": run.progress.iter}

        def after_train_iter(self, run):
            (own,) = [one for one in read(tmp_path)["hooks"] if one["type"].endswith("Tells")]
            seen.append(own["state"]["at"])

    data = make_data(samples=400)
    metrics = WriteMetrics(every=10)
    make_trainer(train_data=data, hooks=[metrics, Tells()], run_dir=tmp_path, max_iters=95).train()
    assert {30, 40, 90} <= {*seen} and 45 not in seen


def test_an_evaluation_leaves_the_timetable_of_the_training(tmp_path):
    trainer = make_classifier(hooks=[WriteMetrics()], run_dir=tmp_path / "run", max_epochs=6)
    trainer.train()
    before = (tmp_path / "run" / "hooks.json").read_bytes()
    trainer.test()
    assert (tmp_path / "run" / "hooks.json").read_bytes() == before


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "run" / "hooks.json").symlink_to(tmp_path / "victim")
    train(tmp_path / "run", epochs=1)
    assert (tmp_path / "victim").read_text() == "mine" and read(tmp_path / "run")["hooks"]


def _train_on_rank(directory):
    trainer = train(directory, Draws())
    return bool(trainer.run._plan._wrappers), [
        float(one.detach().sum()) for one in trainer.run.model.parameters()
    ]


@pytest.mark.slow
def test_on_several_ranks_the_first_writes(tmp_path):
    ends = on_ranks(_train_on_rank, 2, tmp_path / "run")
    assert ends[0] == ends[1] and not ends[0][0]
    assert cell(read(tmp_path / "run"), "after_train_iter", "draws")["calls"] == 20
