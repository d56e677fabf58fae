"""What native hooks compute is in emloop's epoch data, and what its hooks add is a metric."""

import copy
import csv
import logging
from collections import OrderedDict

import numpy as np
import pytest
import torch
from tests.readback import csv_rows
from tests.tiny import make_data, make_trainer

from hookloop import Hook
from hookloop.hooks import ComputeStats, LogVariables, StopOnPlateau, WriteCSV
from hookloop_dialects.emloop import AbstractHook, hooks
from hookloop_dialects.emloop.epoch_data import EpochData, NotEvaluatedError


class Keep(AbstractHook):
    """Keeps a copy of the epoch's data after each epoch."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def after_epoch(self, epoch_id, epoch_data):
        self.kept.append(copy.deepcopy(epoch_data))


class Score(AbstractHook):
    """Adds a number to the validation stream, higher in each epoch."""

    writes_epoch_data = ("score",)

    def __init__(self, value=float):
        super().__init__()
        self.value = value

    def after_epoch(self, epoch_id, epoch_data):
        epoch_data["valid"]["score"] = self.value(epoch_id)


class PutEverywhere(Hook):
    """Puts numbers at several points, undeclared for the validation."""

    writes = ("train/size",)

    def after_train_iter(self, run):
        run.metrics.put("train/size", run.progress.iter)

    def after_val_epoch(self, run, metrics):
        run.metrics.put("val/quality", 7)


def train(tmp_path, *some, **options):
    defaults = {"run_dir": tmp_path / "run", "val_data": make_data(8), "max_epochs": 2}
    trainer = make_trainer(hooks=list(some), **(defaults | options))
    trainer.train()
    return trainer


def test_native_statistics_are_in_the_epoch_data(tmp_path):
    keep = Keep()
    trainer = train(tmp_path, ComputeStats({"loss": ["mean", "max"]}), PutEverywhere(), keep)
    zeroth, _, last = keep.kept
    assert list(zeroth) == list(last) == ["train", "valid"]
    assert list(last["train"]) == ["size", "loss"] and last["train"]["size"] == 5
    assert last["valid"] == {"quality": 7, "loss": last["valid"]["loss"]}
    means = trainer.run.metrics.all_latest()
    for stream, prefix in (("train", "train"), ("valid", "val")):
        for statistic in ("mean", "max"):
            assert last[stream]["loss"][statistic] == means[f"{prefix}/loss/{statistic}"]
    assert list(zeroth["train"]) == ["loss"]  # Of the evaluation: nothing was trained yet.


def test_metrics_of_the_trainer_are_in_the_epoch_data(tmp_path):
    keep, metrics = Keep(), {"gap": lambda output, targets: (output - targets).abs().mean()}
    trainer = train(
        tmp_path, keep, metrics=metrics, val_data={"a": make_data(8), "b": make_data(4)}
    )
    last = keep.kept[-1]
    assert {stream: list(names) for stream, names in last.items()} == {
        "train": [],
        "a": ["gap"],
        "b": ["gap"],
    }
    assert last["b"]["gap"] == trainer.run.metrics.latest("val/b/gap")


def test_what_emloops_hooks_compute_reaches_writers_and_native_hooks(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    stop = StopOnPlateau("val/score", patience=2, mode="min")
    listed = [hooks.ComputeStats(["loss"]), Score(), WriteCSV(), LogVariables(), stop]
    trainer = train(tmp_path, *listed, max_epochs=9)
    assert trainer.run.progress.epoch == 2
    rows = csv_rows(tmp_path / "run" / "metrics.csv")
    assert [float(row["val/score"]) for row in rows] == [1, 2]
    assert all(float(row["train/loss/mean"]) > 0 for row in rows)
    for line in ("val/score: 2.0", "val/loss/mean: ", "train/loss/mean: "):
        assert line in caplog.text


@pytest.mark.parametrize("value", [np.float32(3), torch.tensor(3.0), np.array([3]), lambda: 3])
def test_only_numbers_become_metrics(tmp_path, value):
    trainer = train(tmp_path, Score(lambda epoch: value))
    assert ("val/score" in trainer.run.metrics) is not callable(value)


def test_a_value_that_the_engine_computes_is_kept_and_reported(tmp_path, caplog):
    class Replace(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            epoch_data["valid"]["loss"] = 100.0

    keep = Keep()
    trainer = train(tmp_path, Replace(), keep)
    assert trainer.run.metrics.latest("val/loss") < 100
    assert keep.kept[-1]["valid"]["loss"] == 100
    assert caplog.text.count("keeps its own value") == 1


def test_the_second_of_two_writers_counts(tmp_path):
    class Halve(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            epoch_data["valid"]["loss"]["mean"] /= 2

    keep = Keep()
    trainer = train(tmp_path, ComputeStats({"loss": ["mean", "max"]}), Halve(), keep)
    mean = keep.kept[-1]["valid"]["loss"]["mean"]
    assert trainer.run.metrics.latest("val/loss/mean") == mean
    assert mean < trainer.run.metrics.latest("val/loss/max") / 2 + 1e-9


def test_a_stream_is_found_by_its_other_names():
    data = EpochData({"dev": OrderedDict(loss=1)})
    data.aliases, data.known = {"valid": "dev"}, {"dev", "train"}
    assert data["valid"] is data["dev"] is data.get("valid")
    assert "valid" in data and "test" not in data and data.get("test") is None
    assert copy.deepcopy(data) == {"dev": {"loss": 1}}
    with pytest.raises(NotEvaluatedError, match="was not evaluated in this epoch, only: dev"):
        data["train"]
    with pytest.raises(KeyError, match="no stream 'devv' in this epoch. Did you mean 'dev'"):
        data["devv"]


@pytest.mark.parametrize("variables", [None, ["gap", "loss"]])
@pytest.mark.parametrize("zeroth", [True, False])
def test_a_metric_of_evaluations_is_missing_in_the_training_stream(
    tmp_path, caplog, variables, zeroth
):
    caplog.set_level(logging.INFO)
    listed = [
        *([] if zeroth else [hooks.SkipZerothEpoch()]),
        hooks.ComputeStats(["loss"]),
        hooks.WriteCSV(str(tmp_path), variables=variables),
        hooks.LogVariables(variables),
    ]
    metrics = {"gap": lambda output, targets: (output - targets).abs().mean()}
    trainer = make_trainer(
        hooks=listed, metrics=metrics, max_epochs=2, val_data=make_data(8), run_dir=tmp_path / "run"
    )
    trainer.train()
    with (tmp_path / "training.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch_id"] for row in rows] == (["0", "1", "2"] if zeroth else ["1", "2"])
    assert {row["train_gap"] for row in rows[-2:]} == {""}
    assert rows[-1]["valid_gap"] == str(trainer.run.metrics.latest("val/gap"))
    assert all(row["train_loss"] and row["valid_loss"] for row in rows)
    assert "valid gap: " in caplog.text
