"""When checkpoints are made, under which names, which of them stay, and which is best."""

import json
import os
import shutil
import uuid

import fsspec
import pytest
import torch
from tests.names import epoch_file, iter_file
from tests.tiny import make_data, make_trainer, record

from hookloop.checkpoint.choose import choose
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError, HookError, MetricError
from hookloop.hooks import SaveCheckpoint, StopOnSignal, WriteMetrics
from hookloop.metrics.scores import BestScores
from hookloop.runs.checkpoint_names import INDEX, best_name

NOT_CHECKPOINTS = {
    INDEX,
    "last_checkpoint",
    "config.yaml",
    "environment.json",
    "interventions.jsonl",
    "metrics.jsonl",
    "run.log",
    "summary.json",
    "trained_with.yaml",
}


class Scores(Hook):
    """Replaces the scores of the validations."""

    writes = ("val/acc", "val/loss")
    priority = "HIGH"

    def __init__(self, scores):
        self.scores = scores

    def after_val_epoch(self, run, metrics):
        score = self.scores[run.progress.epoch - 1]
        values = score if isinstance(score, dict) else {"acc": score}
        metrics.update(values)
        for name in set(metrics) - {f"val/{name}" for name in values}:
            del metrics[name]


def train(run_dir, hook, epochs=None, *, iters=None, per_epoch=1, scores=None, **options):
    limits = {"max_epochs": epochs} if epochs else {"max_iters": iters}
    if scores is not None:
        options |= {"val_data": make_data(4), "metrics": {"acc": lambda output, targets: 0.0}}
        options["hooks"] = [*options.get("hooks", []), Scores(scores)]
    trainer = make_trainer(
        train_data=make_data(4 * per_epoch),
        run_dir=run_dir,
        **limits,
        **{**options, "hooks": [hook, *options.get("hooks", [])]},
    )
    trainer.train()
    return trainer


def files(run_dir):
    return {path.name.removesuffix(".pth") for path in run_dir.iterdir()} - NOT_CHECKPOINTS


def epochs(*numbers):
    return {f"epoch_{number}" for number in numbers}


def iters(*numbers):
    return {f"iter_{number}" for number in numbers}


def last(run_dir):
    file = run_dir / "last_checkpoint"
    return file.read_text().strip().removesuffix(".pth") if file.exists() else None


def saved(run_dir, name):
    return torch.load(run_dir / f"{name}.pth", weights_only=True)


# --- when: the grid that was measured with MMEngine's hook, except where that hook is broken ---


@pytest.mark.parametrize(
    ("limit", "options", "expected", "marked"),
    [
        ({"epochs": 10}, {"every": "1 epoch"}, epochs(*range(1, 11)), "epoch_10"),
        ({"epochs": 10}, {"every": None}, epochs(10), "epoch_10"),
        ({"epochs": 10}, {"every": None, "last": False}, set(), None),
        ({"epochs": 20}, {"every": "5 epochs", "keep": 2}, epochs(15, 20), "epoch_20"),
        # The last one, made at the end and not at the interval, counts among the newest.
        ({"epochs": 18}, {"every": "5 epochs", "keep": 2}, epochs(15, 18), "epoch_18"),
        (
            {"epochs": 18},
            {"every": "5 epochs", "keep": 2, "last": False},
            epochs(10, 15),
            "epoch_15",
        ),
        ({"epochs": 10}, {"begin": 5}, epochs(*range(5, 11)), "epoch_10"),
        # The interval counts from `begin`, not from 0.
        ({"epochs": 10}, {"begin": 5, "every": "2 epochs"}, epochs(5, 7, 9, 10), "epoch_10"),
        (
            {"epochs": 10},
            {"begin": 5, "every": "2 epochs", "last": False},
            epochs(5, 7, 9),
            "epoch_9",
        ),
        ({"epochs": 10}, {"begin": 5, "every": "3 epochs"}, epochs(5, 8, 10), "epoch_10"),
        ({"epochs": 10}, {"begin": 20}, epochs(10), "epoch_10"),
        ({"epochs": 10}, {"begin": 20, "last": False}, set(), None),
        (
            {"epochs": 10},
            {"begin": 10, "every": "4 epochs", "last": False},
            epochs(10),
            "epoch_10",
        ),
        ({"iters": 10}, {"every": 3}, iters(3, 6, 9, 10), "iter_10"),
        ({"iters": 10}, {"every": 3, "last": False}, iters(3, 6, 9), "iter_9"),
        ({"iters": 10}, {"every": 3, "begin": 4}, iters(4, 7, 10), "iter_10"),
        ({"iters": 10}, {"every": 3, "keep": 1}, iters(10), "iter_10"),
        ({"epochs": 3, "per_epoch": 4}, {"every": 5}, iters(5, 10, 12), "iter_12"),
        (
            {"epochs": 9},
            {"keep": 1, "keep_every": 3, "last": False},
            epochs(3, 6, 9),
            "epoch_9",
        ),
        ({"epochs": 8}, {"keep": 2, "keep_every": 3}, epochs(3, 6, 7, 8), "epoch_8"),
        ({"epochs": 3}, {"template": "model_{}.pth"}, {"model_1", "model_2", "model_3"}, "model_3"),
    ],
)
def test_files_are_made_and_kept_as_asked(tmp_path, limit, options, expected, marked):
    train(tmp_path, SaveCheckpoint(**({"keep": None} | options)), **limit)
    assert files(tmp_path) == expected
    assert last(tmp_path) == marked


def test_in_the_middle_of_an_epoch_a_file_is_named_after_the_iteration(tmp_path):
    hook = SaveCheckpoint("1 epoch", keep=None)
    train(tmp_path, hook, iters=6, per_epoch=4)
    assert files(tmp_path) == {"epoch_1", "iter_6"}


def test_a_file_that_is_not_of_the_interval_is_not_kept_forever(tmp_path):
    class Stop(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 6:  # In the middle of the second epoch.
                run.stop("enough")

    hook = SaveCheckpoint("1 epoch", keep=1, keep_every=1, last=True)
    train(tmp_path, hook, epochs=9, per_epoch=4, hooks=[Stop()])
    listed = json.loads((tmp_path / INDEX).read_text())["checkpoints"]
    assert [(entry["name"], entry["forever"]) for entry in listed] == [
        (epoch_file(1), True),
        (iter_file(6), False),
    ]


def test_by_time_it_saves_when_the_time_has_passed(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("hookloop.every.monotonic", lambda: now[0])

    class Clock(Hook):
        priority = "HIGHEST"

        def after_train_iter(self, run):
            now[0] += 25  # A minute has passed after every third iteration.

    train(tmp_path, SaveCheckpoint("1 min", keep=None, last=False), iters=10, hooks=[Clock()])
    assert files(tmp_path) == iters(3, 6, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, "keep must be at least 1, not 0"),
        ({"keep_every": 0}, "keep_every must be at least 1"),
        ({"begin": -1}, "begin must be at least 0"),
        ({"template": "ck.pth"}, "must be a file name with {} for the number"),
        ({"template": "x/{}.pth"}, "must be a file name with {} for the number"),
        ({"leave_out": ["model"]}, "leave_out takes optimizer and schedule, not model"),
        ({"best": ["auto", "loss"]}, "'auto' must stand alone"),
        ({"best": ["loss", "loss"]}, "names a metric twice"),
        ({"best": ["loss"], "rule": ["less", "less"]}, "rule has 2 entries for 1 metrics"),
        ({"best": "zebra"}, "Give rule='greater' or rule='less'"),
        ({"best": "loss", "keep_best": 0}, "keep_best must be at least 1, not 0"),
        ({"keep_best": 3}, "keep_best needs best="),
    ],
)
def test_wrong_options_are_rejected_when_it_is_made(options, message):
    with pytest.raises(HookError, match=message.replace("{", "[{]")):
        SaveCheckpoint(**options)


# --- which is best ---

SERIES = [0.1, 0.5, 0.3, 0.5, 0.6, 0.2]
BOTH = [{"acc": score, "loss": 1 - score} for score in SERIES]
NAN = float("nan")


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        (SERIES, {"best": "auto"}, epochs(*range(1, 7)) | {"best_acc_epoch_5"}),
        (SERIES, {"best": "auto", "every": None}, {"epoch_6", "best_acc_epoch_5"}),
        (SERIES, {"best": "auto", "every": None, "last": False}, {"best_acc_epoch_5"}),
        # MMEngine writes an epoch_5 too, which nobody asked for.
        (SERIES, {"best": "auto", "every": "3 epochs"}, epochs(3, 6) | {"best_acc_epoch_5"}),
        (SERIES, {"best": "acc", "every": "2 epochs", "keep": 1}, {"epoch_6", "best_acc_epoch_5"}),
        (SERIES, {"best": "acc", "keep": 2}, epochs(5, 6) | {"best_acc_epoch_5"}),
        (BOTH, {"best": "val/loss", "keep": 1}, {"epoch_6", "best_loss_epoch_5"}),
        (SERIES, {"best": "acc", "rule": "less", "keep": 1}, {"epoch_6", "best_acc_epoch_1"}),
        (
            BOTH,
            {"best": ["acc", "loss"], "keep": 1},
            {"epoch_6", "best_acc_epoch_5", "best_loss_epoch_5"},
        ),
        (
            BOTH,
            {"best": ["acc", "loss"], "rule": "greater", "keep": 1},
            {"epoch_6", "best_acc_epoch_5", "best_loss_epoch_1"},
        ),
        ([{"x/acc": 0.1}, {"x/acc": 0.2}], {"best": "auto"}, epochs(1, 2) | {"best_x_acc_epoch_2"}),
        # Neither NaN nor an equal score replaces the best, and infinity is not a score.
        ([NAN, 0.1, NAN], {"best": "acc", "keep": 1}, {"epoch_3", "best_acc_epoch_2"}),
        ([0.3, 0.3, 0.3], {"best": "acc", "keep": 1}, {"epoch_3", "best_acc_epoch_1"}),
        ([NAN, NAN], {"best": "acc", "keep": 1}, {"epoch_2"}),
        ([float("inf"), 0.2], {"best": "acc", "keep": 1}, {"epoch_2", "best_acc_epoch_2"}),
        # Of the two with 0.5 both are among the best 3, and of 3 equal ones the oldest stay.
        (
            SERIES,
            {"best": "acc", "keep_best": 3, "keep": 1},
            {"epoch_6"} | {f"best_acc_epoch_{n}" for n in (2, 4, 5)},
        ),
        (
            [0.3] * 3,
            {"best": "acc", "keep_best": 2, "keep": 1},
            {"epoch_3", "best_acc_epoch_1", "best_acc_epoch_2"},
        ),
        (
            [0.5, 0.9, NAN, 0.7, 0.8],
            {"best": "acc", "keep_best": 2, "every": None, "last": False},
            {"best_acc_epoch_2", "best_acc_epoch_5"},
        ),
        (
            BOTH,
            {"best": ["acc", "loss"], "rule": "greater", "keep_best": 2, "keep": 1},
            {"epoch_6"}
            | {f"best_acc_epoch_{n}" for n in (2, 5)}
            | {f"best_loss_epoch_{n}" for n in (1, 6)},
        ),
        (
            SERIES[:3],
            {"best": "auto", "keep_best": None, "keep": 1},
            {"epoch_3"} | {f"best_acc_epoch_{n}" for n in (1, 2, 3)},
        ),
    ],
)
def test_the_best_is_kept(tmp_path, scores, options, expected):
    hook = SaveCheckpoint(**({"keep": None} | options))
    train(tmp_path, hook, epochs=len(scores), scores=scores)
    assert files(tmp_path) == expected
    assert last(tmp_path) == (f"epoch_{len(scores)}" if options.get("last", True) else None)


def test_the_best_by_iterations(tmp_path):
    hook = SaveCheckpoint(3, keep=None, best="val/loss")
    train(tmp_path, hook, iters=8, per_epoch=8, val_data=make_data(4), val_every=2)
    (best,) = files(tmp_path) - iters(3, 6, 8)
    assert best.startswith("best_loss_iter_")


def test_a_metric_that_the_validation_lacks_is_an_error():
    scores = BestScores("acc", None, ["acc"], ["loss"])
    with pytest.raises(MetricError, match="'acc'"):
        scores.update({"zebra": 1.0})


def test_it_saves_then_validates_then_promotes(tmp_path):
    seen, calls = record(["before_save_checkpoint", "before_val", "after_val"], lambda run: None)
    train(tmp_path, SaveCheckpoint(best="acc"), epochs=2, scores=[0.1, 0.2], hooks=[seen])
    once = ["before_save_checkpoint", "before_val", "after_val"]
    assert [point for point, _ in calls] == once * 2


def test_the_best_is_a_second_name_of_the_file_not_a_second_write(tmp_path):
    train(tmp_path, SaveCheckpoint(best="acc"), epochs=1, scores=[0.1])
    assert os.path.samefile(tmp_path / epoch_file(1), tmp_path / best_name("acc", epoch_file(1)))
    entry = CheckpointStore(tmp_path).index.entries[best_name("acc", epoch_file(1))]
    assert (entry.kind, entry.metrics["val/acc"]) == ("best", 0.1)


def test_the_old_best_is_deleted_when_the_new_one_is_durable(tmp_path):
    seen = []

    class Look(Hook):
        def after_save_checkpoint(self, run, saved):
            if saved.kind == "best":
                seen.append(sorted(p.name for p in run.dir.glob("best_*")))

    train(tmp_path, SaveCheckpoint(best="acc"), epochs=2, scores=[0.1, 0.2], hooks=[Look()])
    assert seen[-1] == [best_name("acc", epoch_file(2))]


def test_the_best_survives_a_resume(tmp_path):
    def hook():
        return SaveCheckpoint(best="auto", keep=1)

    train(tmp_path, hook(), epochs=2, scores=[0.1, 0.5])
    train(tmp_path, hook(), epochs=4, scores=[0.1, 0.5, 0.4, 0.3], resume=True)
    assert files(tmp_path) == {"epoch_4", "best_acc_epoch_2"}
    train(tmp_path, hook(), epochs=5, scores=[0.1, 0.5, 0.4, 0.3, 0.7], resume=True)
    assert files(tmp_path) == {"epoch_5", "best_acc_epoch_5"}


def best_three(outcome):
    return [(best.path.rsplit("_", 1)[-1], round(best.value, 1)) for best in outcome.all_best]


@pytest.mark.parametrize("kind", ["run", "local", "memory"])
def test_the_three_best_survive_a_resume_wherever_they_are(tmp_path, kind):
    place = {"run": None, "local": tmp_path, "memory": f"memory://{uuid.uuid4().hex}"}[kind]
    scores = [0.4, 0.9, 0.7, 0.2, 0.8, 0.3]

    def run(epochs, **options):
        hook = SaveCheckpoint(best="acc", keep_best=3, keep=1, directory=place)
        return train(tmp_path / "one" / "run", hook, epochs, scores=scores, **options).run

    run(3)
    resumed = run(6, resume=True)
    store = CheckpointStore(f"{place}/run" if place else tmp_path / "one" / "run")
    entries = store.index.entries
    assert list(entries) == [
        *(f"best_acc_epoch_{number}.pth" for number in (2, 3, 5)), epoch_file(6)
    ]  # fmt: skip
    assert [one.rule for one in entries.values()] == [*["greater"] * 3, None]
    # The end of a run asks no remote store, and in this process there was no better one than 0.8.
    expected = [("2.pth", 0.9), ("5.pth", 0.8), ("3.pth", 0.7)] if kind != "memory" else []
    assert best_three(resumed.outcome) == expected


def test_the_best_of_a_branch_that_was_left_do_not_take_the_place_of_new_ones(tmp_path):
    def hook():
        return SaveCheckpoint(best="acc", keep_best=2, keep=None)

    train(tmp_path, hook(), 4, scores=[0.5, 0.6, 0.8, 0.9])
    first = tmp_path / epoch_file(1)
    train(tmp_path, hook(), 3, scores=[0.5, 0.4, 0.55], resume=first)
    kept = {name for name in files(tmp_path) if name.startswith("best_")}
    assert kept == {"best_acc_epoch_1", "best_acc_epoch_3"}


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 1)])
def test_how_many_of_the_best_are_kept_may_change_at_a_resume(tmp_path, first, then):
    scores = [0.5, 0.6, 0.4, 0.7]
    train(tmp_path, SaveCheckpoint(best="acc", keep_best=first, keep=1), 2, scores=scores)
    train(
        tmp_path, SaveCheckpoint(best="acc", keep_best=then, keep=1), 4, scores=scores, resume=True
    )
    expected = {1: {4}, 3: {2, 3, 4}}[then]
    assert files(tmp_path) == {"epoch_4"} | {f"best_acc_epoch_{n}" for n in expected}


def test_a_resume_takes_the_newest_and_a_test_the_best_of_several(tmp_path):
    hook = SaveCheckpoint(None, last=False, best="acc", keep_best=2)
    trainer = train(tmp_path, hook, 3, scores=[0.1, 0.9, 0.5])
    assert CheckpointStore(tmp_path).newest()[0] == best_name("acc", epoch_file(3))
    trainer.validate(checkpoint="best")
    assert choose(tmp_path, "best").path.endswith(best_name("acc", epoch_file(2)))


def test_a_validation_without_training_saves_nothing_and_is_not_remembered(tmp_path):
    trainer = make_trainer(
        hooks=[SaveCheckpoint(best="loss")], val_data=make_data(4), run_dir=tmp_path
    )
    trainer.validate()
    assert files(tmp_path) == set()
    assert trainer.run.hooks[0].state_dict()["best"] == {}


# --- retention and resume ---


@pytest.mark.parametrize(("first", "then"), [(3, 1), (None, 1)])
def test_files_of_before_the_resume_are_under_the_same_retention(tmp_path, first, then):
    train(tmp_path, SaveCheckpoint(keep=first), epochs=4)
    train(tmp_path, SaveCheckpoint(keep=then), epochs=5, resume=True)
    assert files(tmp_path) == epochs(5)


def test_two_hooks_count_their_own_files(tmp_path):
    hooks = {"often": SaveCheckpoint(2, keep=1), "rarely": SaveCheckpoint("1 epoch", keep=None)}
    make_trainer(train_data=make_data(16), hooks=hooks, run_dir=tmp_path, max_epochs=3).train()
    assert files(tmp_path) == {"iter_12"} | epochs(1, 2, 3)


def test_two_hooks_that_want_the_same_file_write_it_once(tmp_path):
    seen, calls = record(["before_save_checkpoint"], lambda run: run.progress.iter)
    hooks = {"a": SaveCheckpoint(keep=1), "b": SaveCheckpoint(keep=2), "seen": seen}
    make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=3).train()
    assert len(calls) == 3
    assert files(tmp_path) == epochs(2, 3)


# --- where to, and what ---


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_checkpoints_go_to_a_directory_elsewhere(tmp_path, kind):
    location = str(tmp_path / "disk") if kind == "local" else f"memory://{uuid.uuid4().hex}"
    hook = SaveCheckpoint(directory=location, best="acc")
    train(tmp_path / "run", hook, epochs=2, scores=[0.1, 0.2])
    files_there, root = fsspec.core.url_to_fs(f"{location}/run")
    names = {path.rsplit("/", 1)[-1] for path in files_there.ls(root, detail=False)}
    assert names - NOT_CHECKPOINTS == {
        epoch_file(1),
        epoch_file(2),
        best_name("acc", epoch_file(2)),
    }
    assert files(tmp_path / "run") == set()
    assert last(tmp_path / "run") == f"{location}/run/epoch_2"


def test_a_url_that_nothing_opens_is_rejected_before_training(tmp_path):
    with pytest.raises(CheckpointError, match="'nosuch'"):
        train(tmp_path, SaveCheckpoint(directory="nosuch://x"), epochs=1)


def test_parts_can_be_left_out_and_such_a_file_is_not_resumed_from(tmp_path):
    hooks = {
        "all": SaveCheckpoint(2, keep=1, last=False),
        "small": SaveCheckpoint("1 epoch", leave_out=["optimizer", "schedule"]),
    }
    make_trainer(train_data=make_data(12), hooks=hooks, run_dir=tmp_path, max_epochs=1).train()
    assert {"optimizers", "schedules"}.isdisjoint(saved(tmp_path, "epoch_1"))
    assert "optimizers" in saved(tmp_path, "iter_2")
    assert last(tmp_path) == "iter_2"
    with pytest.raises(CheckpointError, match="'optimizers'"):
        make_trainer(run_dir=tmp_path, resume=tmp_path / epoch_file(1)).train()


def test_what_a_checkpoint_holds(tmp_path):
    train(tmp_path, SaveCheckpoint(), epochs=1)
    assert set(saved(tmp_path, "epoch_1")) == {
        "model", "optimizers", "schedules", "scaler", "progress", "data", "val_data", "metrics",
        "metric_store", "hooks", "rng", "side_randomness", "kinds", "arguments", "changes",
        "config", "environment", "machine", "run_id", "versions",
    }  # fmt: skip
    entry = CheckpointStore(tmp_path).index.entries[epoch_file(1)]
    assert (entry.iter, entry.epoch, entry.owners) == (1, 1, ("save_checkpoint",))
    assert set(entry.metrics) == {"train/loss", "train_epoch/loss"}


def test_a_hook_may_add_to_a_checkpoint(tmp_path):
    class Add(Hook):
        def before_save_checkpoint(self, run, checkpoint):
            checkpoint["mine"] = {"x": torch.ones(1)}

    train(tmp_path, SaveCheckpoint(), epochs=1, hooks=[Add()])
    assert saved(tmp_path, "epoch_1")["mine"]["x"].tolist() == [1]


# --- ends and problems ---


def test_an_exception_leaves_a_file_of_its_own_that_is_not_resumed_from(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 3:
                raise ValueError("an error of the user")

    with pytest.raises(ValueError, match="error of the user"):
        train(tmp_path, SaveCheckpoint(2, on_exception=True), iters=9, hooks=[Fail()])
    assert files(tmp_path) == {"iter_2", "exception_iter_3"}
    assert last(tmp_path) == "iter_2"
    assert saved(tmp_path, "exception_iter_3")["progress"]["iter"] == 3
    # Without the name of the last one, the newest is looked for, and that must not be this file.
    (tmp_path / "last_checkpoint").unlink()
    name, _ = CheckpointStore(tmp_path).newest()
    assert name == iter_file(2)


@pytest.mark.parametrize("on_signal", [True, False])
def test_a_signal_leaves_a_checkpoint_even_without_last(tmp_path, on_signal):
    class Signal(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 3:
                os.kill(os.getpid(), 15)

    hook = SaveCheckpoint(None, last=False, on_signal=on_signal)
    with pytest.raises(SystemExit) as caught:
        train(tmp_path, hook, iters=9, per_epoch=9, hooks=[StopOnSignal(), Signal()])
    assert caught.value.code == 143
    assert files(tmp_path) == (iters(3) if on_signal else set())


def wait_until(condition):
    while not condition():
        pass


class Remove(Hook):
    """Removes the run's directory in the middle of the training."""

    def after_train_iter(self, run):
        if run.progress.iter == 5:
            shutil.rmtree(run.dir, ignore_errors=True)  # A save may be in progress.


def test_a_directory_removed_while_training_is_made_again(tmp_path):
    trainer = train(tmp_path / "run", SaveCheckpoint(2, keep=3), iters=9, hooks=[Remove()])
    assert trainer.run.outcome.problem is None
    assert {"iter_8", "iter_9"} <= files(tmp_path / "run")
    again = train(tmp_path / "run", SaveCheckpoint(), iters=12, resume=True)
    assert again.run.progress.iter == 12


def test_an_unwritable_directory_keeps_training_and_is_reported_at_the_end(tmp_path, caplog):
    (tmp_path / "run").mkdir()
    (tmp_path / "disk").write_text("a file where the directory should be")
    hooks = [WriteMetrics()]
    hook = SaveCheckpoint(2, directory=tmp_path / "disk")
    trainer = train(tmp_path / "run", hook, iters=7, hooks=hooks)
    outcome = trainer.run.outcome
    assert (outcome.status, outcome.exit_code) == ("completed", 1)
    assert f"disk/run/{iter_file(7)}' could not be saved: " in outcome.problem
    assert caplog.text.count("the last good checkpoint stays") == 1
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["problem"], summary["exit_code"]) == (outcome.problem, 1)


def test_a_disk_that_is_full_for_a_while_costs_nothing_but_time(tmp_path, caplog, monkeypatch):
    full = [False]
    free = shutil.disk_usage

    def usage(path):
        return free(path)._replace(free=0) if full[0] else free(path)

    class Fill(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 3:  # The save of iteration 2 runs in another thread.
                wait_until((tmp_path / "last_checkpoint").exists)
            full[0] = 3 <= run.progress.iter < 7
            if run.progress.iter == 6:
                assert saved(tmp_path, "iter_2")["progress"]["iter"] == 2

    monkeypatch.setattr(shutil, "disk_usage", usage)
    trainer = train(tmp_path, SaveCheckpoint(2, keep=1), iters=8, hooks=[Fill()])
    assert trainer.run.outcome.exit_code == 0
    assert files(tmp_path) == {"iter_8"}
    assert caplog.text.count("No space left on device") == 1
    assert caplog.text.count("the problem is over") == 1


def test_later_scores_are_not_compared_with_a_best_that_could_not_be_saved(
    tmp_path, monkeypatch, caplog
):
    full = [False]
    free = shutil.disk_usage
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: free(path)._replace(free=0) if full[0] else free(path)
    )

    class Fill(Hook):
        def before_train_epoch(self, run):
            if run.progress.epoch == 1:
                wait_until((tmp_path / best_name("acc", epoch_file(1))).exists)
            if run.progress.epoch == 2:
                wait_until(lambda: f"{epoch_file(2)}' could not be saved" in caplog.text)
            full[0] = run.progress.epoch == 1

    scores = [0.1, 0.9, 0.5]  # The best of all is lost: 0.5 must then be better than 0.1.
    train(tmp_path, SaveCheckpoint(best="acc"), epochs=3, scores=scores, hooks=[Fill()])
    assert files(tmp_path) == {"epoch_1", "epoch_3", "best_acc_epoch_3"}


def test_the_best_may_depend_on_a_metric_that_a_hook_computes(tmp_path):
    class Score(Hook):
        writes = ("val/score",)

        def after_val_epoch(self, run, metrics):
            run.metrics.put("val/score", {1: 0.1, 2: 0.7, 3: 0.4}[run.progress.epoch])

    hook = SaveCheckpoint(best="val/score", rule="greater")
    trainer = make_trainer(
        hooks=[Score(), hook], max_epochs=3, val_data=make_data(4), run_dir=tmp_path
    )
    trainer.train()
    assert (tmp_path / best_name("score", epoch_file(2))).is_file()


def test_auto_chooses_a_metric_before_the_loss(tmp_path):
    accuracy = {"accuracy": lambda output, targets: 0.5}
    hook = SaveCheckpoint(best="auto")
    make_trainer(hooks=[hook], val_data=make_data(4), metrics=accuracy, run_dir=tmp_path).train()
    assert (tmp_path / best_name("accuracy", epoch_file(1))).is_file()
