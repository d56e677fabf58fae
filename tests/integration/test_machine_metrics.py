"""Two equal runs compare as equal, whatever their hooks measure of the machine."""

from time import perf_counter

import torch
from tests.names import epoch_file
from tests.tiny import make_trainer

from hookloop import Hook, Machine
from hookloop.checkpoint.state.compare import compare
from hookloop.hooks import (
    LogMemory,
    RecordHookTimes,
    RecordThroughput,
    RecordTimes,
    SaveCheckpoint,
    WriteMetrics,
)
from hookloop.runs import RunDir
from hookloop.runs.differences import compare_runs
from hookloop.runs.same_metrics import compare_metrics


class RecordFanSpeed(Hook):
    """Stands for a hook of the user's: nothing in the name says that it measures the machine."""

    writes = (Machine("train/fan_speed"),)

    def after_train_iter(self, run):
        run.metrics.put("train/fan_speed", perf_counter())


def train(folder, **options):
    hooks = [
        WriteMetrics(every=1), RecordTimes(), RecordThroughput(every=2, flops=1e6, peak=1e12),
        LogMemory(every=1), RecordHookTimes(), RecordFanSpeed(), SaveCheckpoint(),
    ]  # fmt: skip
    make_trainer(run_dir=folder, hooks=hooks, max_epochs=2, **options).train()
    return folder


def test_equal_runs_are_equal_for_diff_and_reproduce_and_in_their_checkpoints(tmp_path):
    one, other = train(tmp_path / "one"), train(tmp_path / "other")
    assert compare_metrics(one, other).is_equal
    found = compare_runs(RunDir(one), RunDir(other))["metrics"]
    assert found["first_difference"] is None and found["only"] == {}
    assert "train/loss" in found["metrics"]
    first, second = (
        torch.load(folder / epoch_file(2), weights_only=True) for folder in (one, other)
    )
    assert compare(first, second) == []


def test_a_metric_that_measures_the_model_is_compared_whatever_its_name(tmp_path):
    class RecordReactionSpeed(Hook):
        writes = ("train/lifetime",)

        def after_train_iter(self, run):
            run.metrics.put("train/lifetime", perf_counter())

    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        hooks = [WriteMetrics(every=1), RecordReactionSpeed()]
        make_trainer(run_dir=folder, hooks=hooks, max_epochs=1).train()
    assert {one.name for one in compare_metrics(*folders).differences} == {
        "train/lifetime",
        "train_epoch/lifetime",
    }


def test_tensors_of_a_model_are_compared_whatever_their_names():
    one = {"model": {"seconds": torch.zeros(2), "decay_time": torch.zeros(2)}}
    other = {"model": {"seconds": torch.ones(2), "decay_time": torch.ones(2)}}
    (found,) = compare(one, other)
    assert found.count == 2
