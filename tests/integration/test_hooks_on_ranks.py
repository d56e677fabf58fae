"""Hooks on three ranks: they see all data, agree on what they do, and continue after a resume."""

import csv
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from tests.ranks import each_rank, on_ranks
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Trainer
from hookloop.checkpoint.state.compare import compare
from hookloop.engine.hook import Hook
from hookloop.hooks import (
    AccumulateVariables,
    AverageWeights,
    ClassificationMetrics,
    ComputeStats,
    CutMix,
    FreezeParameters,
    MixUp,
    MomentumTeacher,
    RecomputeBatchNorm,
    RecordThroughput,
    SaveCheckpoint,
    SaveConfusionMatrix,
    SavePredictions,
    StopAfter,
    StopOnNaN,
    StopOnPlateau,
)
from hookloop.trainer.settings import gathered

# The contract suite runs every hook on two ranks in each run of the tests.
pytestmark = [pytest.mark.slow, pytest.mark.long]


def make_data(samples, size=8, *, shuffle=False):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, 4, generator=generator)
    dataset = TensorDataset(inputs, inputs[:, :3].argmax(1))
    return DataLoader(dataset, batch_size=size, shuffle=shuffle)


def make_model(*, norm=False):
    torch.manual_seed(0)
    layers = [torch.nn.BatchNorm1d(8)] if norm else [torch.nn.Dropout(0.1)]
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), *layers, torch.nn.Tanh(), torch.nn.Linear(8, 3)
    )


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()


def make_trainer(directory, *hooks, norm=False, **options):
    """Three iterations per epoch; the last batch of the evaluations has a single sample."""
    model = options.pop("model", None) or make_model(norm=norm)
    parts = {
        "train_data": make_data(22, shuffle=True),
        "val_data": make_data(17),
        "data.test": make_data(17),
        "loss": torch.nn.functional.cross_entropy,
        "metrics": {"accuracy": accuracy},
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        "max_epochs": 2,
        "default_hooks": False,
        "run_dir": directory,
        "seed": 3,
    }
    return Trainer(model, hooks=hooks, **gathered(parts | options))


def plain_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


class CountSamples(AccumulateVariables):
    """Puts how many samples an epoch had."""

    def summarize(self, run, stream, values):
        run.metrics.put(f"{stream}/samples", float(sum(map(len, values["targets"]))))


# --- data of all ranks ----------------------------------------------------------------------------


def collect(directory):
    hooks = (
        SavePredictions(["output", "targets", "inputs"], streams=["val", "test"]),
        SaveConfusionMatrix(),
        ClassificationMetrics(metrics=["f1", "recall"]),
        ComputeStats({"loss": ["mean", "max"], "targets": ["sum"]}),
        CountSamples(["targets"]),
    )
    # In order, so that a process and many ranks train on the same batches.
    options = {"model": plain_model(), "train_data": make_data(22), "accumulate": 2}
    trainer = make_trainer(directory, *hooks, **options)
    trainer.train()
    trainer.test()
    return trainer.run.metrics.all_latest()


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def test_each_sample_counts_once_and_in_the_order_of_the_data(tmp_path):
    (alone,) = on_ranks(collect, 1, tmp_path / "one")
    of_ranks = on_ranks(collect, 3, tmp_path / "three")
    for numbers in of_ranks:
        assert numbers.keys() == alone.keys()
        assert numbers == of_ranks[0]
        for name, number in alone.items():
            assert numbers[name] == pytest.approx(number, rel=1e-4), name
    for file in ("test_epoch_2.csv", "val_epoch_1.csv"):
        one, three = (rows_of(tmp_path / run / "predictions" / file) for run in ("one", "three"))
        assert one[0] == three[0] and len(one) == 18
        numbers = [np.array(rows[1:], dtype=float) for rows in (one, three)]
        np.testing.assert_allclose(*numbers, atol=1e-4)
        confused = (rows_of(tmp_path / run / "confusion" / file) for run in ("one", "three"))
        assert next(confused) == next(confused)


def count_throughput(directory):
    counted = []
    hook = RecordThroughput(every=1)
    trainer = make_trainer(directory, hook, max_epochs=1)
    trainer.on("after_update")(lambda run: counted.append(hook._samples))
    trainer.train()
    return counted


def test_the_throughput_counts_the_samples_of_all_ranks(tmp_path):
    assert on_ranks(count_throughput, 3, tmp_path / "run")[0] == [8, 8, 6]


def normalize(directory, hooks, options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    make_trainer(directory, *hooks(), model=model, **options).train()
    return model[0].running_mean, model[0].running_var


def test_batch_norm_gets_the_statistics_of_all_ranks(tmp_path):
    hooks, inputs = (lambda: [RecomputeBatchNorm(samples=22)]), make_data(22).dataset.tensors[0]
    for mean, variance in on_ranks(normalize, 3, tmp_path / "run", hooks, {}):
        torch.testing.assert_close(mean, inputs.mean(0))
        torch.testing.assert_close(variance, inputs.var(0))


@pytest.mark.parametrize(("options", "is_equal"), [({}, True), ({"buffers": None}, False)])
def test_buffers_are_averaged_by_default(options, is_equal, tmp_path):
    settings = {"default_hooks": {"console": None, **options}}
    ends = on_ranks(normalize, 3, tmp_path / "run", list, settings)
    assert all(torch.equal(ends[0][0], mean) for mean, _ in ends) == is_equal


# --- decisions ------------------------------------------------------------------------------------


class PutOnFirst(Hook):
    """Puts a metric that the other ranks do not have."""

    ranks = "first"
    writes = ("val/own",)

    def after_val_epoch(self, run, metrics):
        run.metrics.put("val/own", 1.0)


def decide(directory):
    hooks = (
        PutOnFirst(),
        StopOnPlateau("val/own", patience=2, mode="less"),
        SaveCheckpoint(best="val/own", rule="less", every="0.001 s"),
    )
    trainer = make_trainer(directory, *hooks, max_epochs=9)
    outcome = trainer.train()
    return outcome.status, outcome.reason, trainer.run.progress.iter


def test_what_the_first_rank_decides_happens_on_all_in_the_same_iteration(tmp_path):
    ends = on_ranks(decide, 3, tmp_path / "run")
    reason = "val/own has not improved on 1 for 2 validations"
    assert Counter(ends) == {("stopped", reason, 9): 3}
    files = {path.name for path in (tmp_path / "run").glob("*.pth")}
    assert "best_own_iter_3.pth" in files
    for path in (tmp_path / "run").glob("iter_*.pth"):
        saved = torch.load(path, weights_only=True)
        assert path.name == f"iter_{saved['progress']['iter']}.pth"


class PutScores(Hook):
    """Puts scores that the first rank alone has."""

    ranks = "first"
    writes = ("val/own",)

    def after_val_epoch(self, run, metrics):
        run.metrics.put("val/own", [0.2, 0.9, 0.4, 0.7][run.progress.epoch - 1])


def keep_two(directory, strategy, epochs, **options):
    hook = SaveCheckpoint(best="val/own", rule="greater", keep=1, keep_best=2)
    trainer = make_trainer(
        directory, PutScores(), hook, max_epochs=epochs, parallel=strategy, **options
    )
    return [best.iteration for best in trainer.train().all_best]


@pytest.mark.parametrize("strategy", ["replicated", "sharded"])
def test_several_of_the_best_are_kept_on_ranks_and_over_a_resume(tmp_path, strategy):
    home, ending = tmp_path / "run", ".pth" if strategy == "replicated" else ""
    on_ranks(keep_two, 3, home, strategy, 2)
    ends = on_ranks(partial(keep_two, resume=True), 3, home, strategy, 4)
    assert ends == [[6, 12]] * 3
    kept = {path.name for path in home.iterdir() if "epoch_" in path.name}
    assert kept == {
        f"{name}{ending}" for name in ("best_own_epoch_2", "best_own_epoch_4", "epoch_4")
    }


def stop_by_clock(directory):
    trainer = make_trainer(directory, StopAfter(minutes=1e-6), max_epochs=500)
    return trainer.train().reason, trainer.run.progress.iter


def test_a_clock_of_the_first_rank_stops_all(tmp_path):
    ends = set(on_ranks(stop_by_clock, 3, tmp_path / "run"))
    assert len(ends) == 1 and "minutes have passed" in ends.pop()[0]


class StopOnFirst(Hook):
    """Stops, on the first rank."""

    ranks = "first"

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            run.stop("enough")


class StopOnSecond(Hook):
    """Claims on one rank that all ranks stop."""

    def after_train_iter(self, run):
        if run.progress.iter == 4 and run.world.rank == 1:
            run.stop("enough", everywhere=True)


def stop_on_one(directory, kind):
    trainer = make_trainer(directory, kind())
    return trainer.train().reason, trainer.run.progress.iter


def test_a_request_of_a_hook_on_the_first_rank_is_obeyed_at_once(tmp_path):
    assert set(on_ranks(stop_on_one, 3, tmp_path / "run", StopOnFirst)) == {("enough", 4)}


def test_a_request_that_only_some_ranks_make_everywhere_is_rejected(tmp_path):
    for end in each_rank(stop_on_one, 3, tmp_path / "run", StopOnSecond):
        assert end.code == 1
        assert "only the ranks [1] made a request with everywhere=True" in end.error


class SpoilOutput(Hook):
    """Makes the output of one rank infinite, in one iteration."""

    takes_part_in_training = True

    def after_forward(self, run):
        if run.phase == "train" and run.world.rank == 1 and run.progress.iter == 3:
            run.output = run.output * float("inf")


def find_nan(directory, options):
    hooks = (SpoilOutput(), StopOnNaN(action="stop", dump=True, **options))
    trainer = make_trainer(directory, *hooks)
    outcome = trainer.train()
    weights = torch.cat([one.detach().ravel() for one in trainer.run.model.parameters()])
    return outcome.reason, trainer.run.progress.iter, weights


@pytest.mark.parametrize("options", [{"every": 1}, {"every": 1, "loss": False, "outputs": True}])
def test_a_nan_of_one_rank_stops_all_before_the_update(options, tmp_path):
    ends = on_ranks(find_nan, 3, tmp_path / "run", options)
    for reason, iteration, weights in ends:
        assert "on rank 1; the weights are still finite" in reason and reason == ends[0][0]
        assert iteration == 4
        assert weights.isfinite().all() and torch.equal(weights, ends[0][2])
    assert [path.name for path in (tmp_path / "run").glob("nan*")] == ["nan_iter_4_rank_1.pt"]


# --- state that differs from rank to rank ---------------------------------------------------------


def make_hooks():
    return (
        AverageWeights(momentum=0.1, buffers=True),
        MomentumTeacher(momentum=0.9),
        MixUp(3),
        CutMix(3, dims=1, probability=0.5),
        RecomputeBatchNorm(samples=12, at="validation"),
        CountSamples(["targets", "loss"], streams=["train", "val"]),
        FreezeParameters("0.*", until=2),
    )


class Cut(Hook):
    """Saves, and fails one iteration later."""

    def __init__(self, at):
        self.at = at

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            run.save("cut.pth", everywhere=True)
        elif run.progress.iter > self.at:
            raise KeyError("cut")


def train(directory, at=None, resume=None):
    hooks = (*make_hooks(), *((Cut(at),) if at else ()))
    trainer = make_trainer(directory, *hooks, norm=True, resume=resume, default_hooks=None)
    trainer.train()
    run = trainer.run
    states = {hook.name: hook.state_dict() for hook in hooks}
    samples = run.metrics.latest("train/samples")
    return {"model": run.model.state_dict(), "hooks": states, "samples": samples}


def parameters_of(end):
    return {name: part for name, part in end["model"].items() if "running" not in name}


@pytest.mark.parametrize("at", [2, 4])
def test_a_resumed_run_ends_as_one_that_was_not_cut(at, tmp_path):
    whole = on_ranks(train, 3, tmp_path / "whole")
    assert all(not compare(parameters_of(end), parameters_of(whole[0])) for end in whole)
    ends = each_rank(train, 3, tmp_path / "cut", at)
    assert all(end.code for end in ends)
    resumed = on_ranks(train, 3, tmp_path / "cut", None, True)
    for rank in range(3):
        assert not compare(whole[rank], resumed[rank]), rank
    # The random numbers of a rank are its own.
    mixed = [end["hooks"]["mix_up"]["random"]["state"]["state"] for end in whole]
    assert len(set(mixed)) == 3


@pytest.mark.parametrize("size", [1, 2])
def test_a_run_continues_on_another_number_of_ranks(size, tmp_path):
    ends = each_rank(train, 3, tmp_path / "cut", 2)
    assert all(end.code for end in ends)
    resumed = on_ranks(train, size, tmp_path / "cut", None, True)
    assert all(end["samples"] == 22 for end in resumed)


def test_averaged_weights_of_shards_are_those_of_replicas(tmp_path):
    def losses(strategy):
        average = AverageWeights(momentum=0.1)
        trainer = make_trainer(tmp_path / strategy, average, parallel=strategy)
        return trainer.train().metrics["val/loss"]

    replicated = on_ranks(lambda: losses("replicated"), 3)
    assert on_ranks(lambda: losses("sharded"), 3) == pytest.approx(replicated, rel=1e-5)
