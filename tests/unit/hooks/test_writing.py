"""Every value in the metric store reaches every writer, once, with its iteration."""

import io
import json
import math

import numpy as np
import pytest
import torch
from tests import readback
from tests.names import iter_file
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.errors import MetricError
from hookloop.hooks import (
    LogMetrics,
    SaveCheckpoint,
    ShowProgress,
    WriteCSV,
    WriteMetrics,
    WriteMLflow,
    WriteTensorBoard,
    WriteTrackio,
    WriteWandb,
)


def put_at(point, name, priority=50, value=None, every=None):
    """Return a hook that puts the number of completed iterations at a point."""

    def method(self, run, *args):
        run.metrics.put(name, run.progress.iter if value is None else value)

    kind = type("Put", (Hook,), {point: method, "priority": priority, "every": every})
    return kind().named(f"put {name} at {point}")


JSONL = ("metrics.jsonl", readback.jsonl_points)
ROWS = ("rows.csv", readback.csv_points)
EVENTS = ("tensorboard", readback.tensorboard_points)


def files(every=2):
    return {
        "metrics": WriteMetrics(every=every),
        "rows": WriteCSV("rows.csv", every=every),
        "board": WriteTensorBoard(every=every),
    }


def train(tmp_path, *puts, every=2, **options):
    hooks = files(every) | {put.name: put for put in puts}
    trainer = make_classifier(
        hooks=hooks, run_dir=tmp_path / "run", **({"max_epochs": 2} | options)
    )
    trainer.train()
    return trainer


def points(tmp_path, name):
    """Return the points of a name, which must be the same in all files."""
    found = [read(tmp_path / "run" / file, name) for file, read in (JSONL, ROWS, EVENTS)]
    single = [[(step, np.float32(value)) for step, value in one] for one in found]
    assert all(one == single[0] for one in single)
    return found[0]


@pytest.mark.parametrize("priority", [10, 50, 100])
@pytest.mark.parametrize(
    ("point", "steps"),
    [
        ("before_run", [0]),
        ("before_train", [0]),
        ("after_train_epoch", [3, 6]),
        ("after_val_epoch", [3, 6]),
        ("after_val", [3, 6]),
        ("after_epoch", [3, 6]),
        ("after_epoch_profile", [3, 6]),
        ("after_train", [6]),
        ("after_run", [6]),
    ],
)
def test_a_value_is_written_from_any_point_and_priority(tmp_path, point, steps, priority):
    names = ["quality", "knn/acc", "val/extra", "train/extra", "a b/ü@1%"]
    train(tmp_path, *(put_at(point, name, priority) for name in names))
    for name in names:
        assert points(tmp_path, name) == [(step, step) for step in steps], name


@pytest.mark.parametrize("every", [1, 2, 50])
def test_a_hook_may_put_values_at_its_own_interval(tmp_path, every):
    """A mean of what was put since the last write, with the iteration of the last of it."""
    train(tmp_path, put_at("after_train_iter", "probe", every="2 iters"), every=every, max_epochs=3)
    by_epochs = [(2, 2.0), (6, 5.0), (8, 8.0)]
    assert points(tmp_path, "probe") == (
        by_epochs if every == 50 else [(s, s) for s in (2, 4, 6, 8)]
    )


def test_values_within_an_iteration_and_a_validation_are_written_as_means(tmp_path):
    class Probe(Hook):
        def after_loss(self, run):
            run.metrics.put(f"probe/{run.phase}", 1.0)

    train(tmp_path, Probe(), val_every=2)
    assert [step for step, _ in points(tmp_path, "probe/train")] == [2, 3, 4, 6]
    assert [step for step, _ in points(tmp_path, "probe/val")] == [2, 4, 6]


def test_tensors_nan_and_infinity_are_written(tmp_path):
    train(
        tmp_path,
        put_at("after_epoch", "tensor", value=torch.tensor(2.5)),
        put_at("after_train", "nan", value=math.nan),
        put_at("after_train", "inf", value=torch.tensor(math.inf)),
    )
    assert points(tmp_path, "tensor") == [(3, 2.5), (6, 2.5)]
    for file, read in (JSONL, ROWS, EVENTS):
        ((step, value),) = read(tmp_path / "run" / file, "nan")
        assert step == 6 and math.isnan(value)
        assert read(tmp_path / "run" / file, "inf") == [(6, math.inf)]


def test_values_of_a_separate_test_or_validation_are_written(tmp_path):
    trainer = train(tmp_path, put_at("after_test", "late", 100), put_at("before_test", "early"))
    trainer.test()
    assert points(tmp_path, "late") == points(tmp_path, "early") == [(6, 6)]
    trainer.validate()
    assert points(tmp_path, "late") == [(6, 6)]
    assert [step for step, _ in points(tmp_path, "val/loss")] == [3, 6, 6]


def test_values_of_a_failing_run_are_written(tmp_path):
    class Fail(Hook):
        priority = 100

        def before_update(self, run):
            if run.progress.iter == 3:
                raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        train(tmp_path, put_at("after_loss", "probe", value=1.0), Fail(), every=50)
    assert points(tmp_path, "probe")[-1] == (3, 1.0)
    assert points(tmp_path, "train/loss")[-1][0] == 3


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [iter_file(1), iter_file(3), iter_file(4), iter_file(5)])
@pytest.mark.parametrize("every", [1, 2, 50])
def test_a_resumed_run_writes_the_same_points(tmp_path, every, checkpoint):
    names = ["quality", "probe", "val/extra", "train/loss", "train_epoch/loss", "val/loss", "lr"]

    def run(name, **options):
        puts = [
            put_at("after_epoch", "quality", 100),
            put_at("after_train_iter", "probe", every="3 iters"),
            put_at("after_val", "val/extra", 100),
            SaveCheckpoint(every="1 iter", keep=None),
        ]
        train(tmp_path / name, *puts, every=every, max_epochs=3, val_every=2, **options)

    run("whole")
    run("parts")
    run("parts", resume=tmp_path / "parts" / "run" / checkpoint)
    for name in names:
        assert points(tmp_path / "parts", name) == points(tmp_path / "whole", name), name


def test_the_row_of_an_epoch_has_the_values_of_the_epoch(tmp_path):
    hooks = {
        "csv": WriteCSV(),
        "quality": put_at("after_epoch", "quality", 100),
        "last": put_at("after_run", "last", 100),
    }
    make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=2).train()
    rows = readback.csv_rows(tmp_path / "metrics.csv")
    assert [row["quality"] for row in rows] == ["3.0", "6.0", ""]
    assert [row["last"] for row in rows] == ["", "", "6.0"]
    assert "train_epoch/loss" not in rows[0]  # It would repeat train/loss.


def test_a_metric_of_a_hook_can_be_chosen_by_name(tmp_path):
    put = put_at("after_epoch", "quality")
    put.writes = ("quality",)
    hooks = {"csv": WriteCSV(metrics=["quality"]), "put": put}
    make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=2).train()
    assert readback.csv_points(tmp_path / "metrics.csv", "quality") == [(3, 3.0), (6, 6.0)]


@pytest.mark.slow
def test_trackers_get_every_value(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    hooks = {
        "wandb": WriteWandb("p", mode="offline"),
        "mlflow": WriteMLflow(),
        "trackio": WriteTrackio("p"),
        "quality": put_at("after_epoch", "quality", 100),
        "knn": put_at("after_run", "knn/acc@5", 100),
    }
    trainer = make_classifier(hooks=hooks, run_dir=tmp_path / "run", max_epochs=2)
    trainer.train()
    run_id = hooks["mlflow"].run_id
    for name in ("quality", "knn/acc@5"):
        wanted = [(3, 3.0), (6, 6.0)] if name == "quality" else [(6, 6.0)]
        assert readback.wandb_points(tmp_path / "run", name) == wanted
        assert readback.trackio_points("p", "run", name) == wanted
        theirs = name.replace("@", "_")
        assert readback.mlflow_points(tmp_path / "run" / "mlruns", run_id, theirs) == wanted


def test_screen_and_log_show_every_value(tmp_path):
    screen = io.StringIO()
    hooks = {
        "console": ShowProgress(every=2, file=screen),
        "log": LogMetrics(every=2),
        "epoch": put_at("after_epoch", "quality", 100),
        "iter": put_at("after_train_iter", "probe/x", every="3 iters"),
        "end": put_at("after_train", "finally"),
    }
    make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=2).train()
    for text in (screen.getvalue(), (tmp_path / "run.log").read_text(encoding="utf-8")):
        assert text.count("quality 3") == text.count("quality 6") == 1
        assert text.count("probe/x 3") == text.count("probe/x 6") == text.count("finally 6") == 1


@pytest.mark.parametrize(
    ("limits", "last"), [({"max_epochs": 2}, None), ({"max_iters": 5}, "loss")]
)
def test_the_last_line_with_a_loss_is_that_of_the_epoch(tmp_path, limits, last):
    screen = io.StringIO()
    hooks = {"console": ShowProgress(every=50, file=screen, summary=False)}
    trainer = make_classifier(hooks=hooks, run_dir=tmp_path, val_data=None, **limits)
    trainer.train()
    *_, line = [text for text in screen.getvalue().splitlines() if "loss" in text]
    assert ("train: loss" in line) == (last is None)
    mean = trainer.run.metrics.smooth(["train/loss"], 5 if last else 3)["train/loss"]
    assert f"loss {mean:.4g}" in line


def test_the_outcome_has_the_newest_values(tmp_path):
    trainer = make_classifier(hooks=[put_at("after_run", "last", 100)], run_dir=tmp_path)
    assert trainer.train().metrics["last"] == 3.0


def test_the_loss_of_an_interval_and_of_an_epoch_have_different_names(tmp_path):
    trainer = train(tmp_path, max_epochs=4)
    losses = points(tmp_path, "train/loss")
    assert [step for step, _ in losses] == [2, 4, 6, 8, 10, 12]
    epochs = points(tmp_path, "train_epoch/loss")
    assert [step for step, _ in epochs] == [3, 6, 9, 12]
    assert epochs[-1][1] == pytest.approx(trainer.run.metrics.mean("train/loss"), rel=1e-6)


def test_the_last_iteration_of_an_epoch_writes_one_record(tmp_path):
    def step(run, batch):
        output = run.model(batch[0])
        loss = torch.nn.functional.cross_entropy(output, batch[1])
        return {"loss": loss, "size": len(batch[1])}

    options = {"loss": None, "step": step, "metrics": None, "val_data": None}
    train(tmp_path, every=50, **options)
    text = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [one for one in map(json.loads, text.splitlines()) if one["span"] == "iter"]
    assert [(one["iter"], one["epoch"]) for one in lines] == [(6, 2)]
    assert {"train/loss", "train/size", "lr"} <= lines[0].keys()


def test_a_learning_rate_that_a_hook_puts_is_kept(tmp_path):
    hooks = [WriteCSV("epochs.csv"), put_at("after_epoch", "lr", value=7.0)]
    train(tmp_path, *hooks, every=50)
    assert readback.csv_points(tmp_path / "run" / "epochs.csv", "lr") == [(3, 7.0), (6, 7.0)]
    assert {value for _, value in points(tmp_path, "lr")} == {7.0}


@pytest.mark.parametrize("every", ["1 epoch", 2])
def test_the_learning_rate_can_be_chosen(tmp_path, every):
    rows = WriteCSV("chosen.csv", every=every, metrics=["lr", "train/loss"])
    train(tmp_path, rows)
    found = readback.csv_rows(tmp_path / "run" / "chosen.csv")
    assert list(found[0]) == ["time", "phase", "iter", "epoch", "train/loss", "lr"]
    assert all(row["lr"] and row["train/loss"] for row in found)
    only = WriteCSV("only.csv", every=every, metrics=["lr"])
    make_classifier(hooks=[only], run_dir=tmp_path / "other").train()
    assert list(readback.csv_rows(tmp_path / "other" / "only.csv")[0])[4:] == ["lr"]


def test_a_name_that_no_hook_declares_is_rejected_with_advice(tmp_path):
    hooks = [WriteCSV(metrics=["quality"]), put_at("after_epoch", "quality")]
    with pytest.raises(MetricError, match=r"= \('quality',\)"):
        make_classifier(hooks=hooks, run_dir=tmp_path).train()
