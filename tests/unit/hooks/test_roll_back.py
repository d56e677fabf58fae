import json
import math
from contextlib import suppress

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_trainer
from torch import nn

from hookloop import CheckpointStore, Hook
from hookloop.errors import HookError
from hookloop.hooks import (
    RequireFiniteLoss,
    RollBack,
    SaveCheckpoint,
    StopAfter,
    StopOnNaN,
    WriteMetrics,
    _stopwatch,
)
from hookloop.runs import read_interventions, read_tree
from hookloop.runs.changes import read_changes
from hookloop.runs.layout import RunDir


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))


def batches(bad=(), by=1e3, count=20):
    """Batches of which those with these numbers, from 1, have targets that make the loss jump."""
    found = [(inputs, targets.clone()) for inputs, targets in make_data(4 * count)]
    for number in bad:
        found[number - 1][1].mul_(by)
    return found


def train(data, *hooks, run_dir=None, epochs=1, **options):
    model = network()
    trainer = make_trainer(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        train_data=data,
        max_epochs=epochs,
        seed=1,
        hooks=list(hooks),
        run_dir=run_dir,
        **options,
    )
    trainer.train()
    return trainer


def without(*numbers, count=20):
    return [batch for number, batch in enumerate(batches(count=count), 1) if number not in numbers]


@pytest.mark.parametrize("by", [1e3, math.nan, math.inf])
@pytest.mark.parametrize("bad", [7, 12, 13, 20])
def test_the_run_ends_as_without_the_batch(bad, by, tmp_path):
    hook = RollBack(window=5, factor=10)
    saves = SaveCheckpoint(every=3, keep=None)
    healed = train(
        batches([bad], by), hook, saves, RequireFiniteLoss(), StopOnNaN(), run_dir=tmp_path
    )
    assert healed.run.progress.iter == 19
    assert_same_bits(healed.run.model, train(without(bad)).run.model)
    assert healed.run.metrics.latest("train/rewinds") == 1


def test_each_jump_is_recorded(tmp_path, caplog):
    hooks = [RollBack(window=5, factor=10), SaveCheckpoint(every=3), WriteMetrics()]
    healed = train(batches([8, 14]), *hooks, run_dir=tmp_path)
    assert_same_bits(healed.run.model, train(without(8, 14)).run.model)
    changes = read_changes(RunDir(tmp_path))
    # The fourteenth batch is the thirteenth iteration, because the eighth was left out.
    assert [(one["old"], one["new"], one["how"]) for one in changes] == [
        (8, 6, "rewound"),
        (13, 12, "rewound"),
    ]
    assert "train/loss is" in caplog.text and "its median was" in caplog.text


def test_several_iterations_before_the_jump_can_be_left_out(tmp_path):
    hooks = [RollBack(window=5, factor=10, skip=3), SaveCheckpoint(every=5)]
    healed = train(batches([9]), *hooks, run_dir=tmp_path)
    assert_same_bits(healed.run.model, train(without(7, 8, 9)).run.model)


def test_data_from_before_the_checkpoint_is_not_left_out(tmp_path):
    hooks = [RollBack(window=5, factor=10, skip=5), SaveCheckpoint(every=7, keep=None)]
    healed = train(batches([9]), *hooks, run_dir=tmp_path)
    assert_same_bits(healed.run.model, train(without(8, 9)).run.model)


def test_too_many_jumps_end_the_run(tmp_path):
    hooks = [RollBack(window=5, factor=10, most=2), SaveCheckpoint(every=3)]
    with pytest.raises(FloatingPointError, match=r"back 2 times.*\(most=2\)"):
        train(batches([8, 11, 14]), *hooks, run_dir=tmp_path)


def test_the_limit_counts_over_a_resume(tmp_path):
    def hooks():
        return [RollBack(window=5, factor=10, most=2), SaveCheckpoint(every=3)]

    train(batches([8, 14]), *hooks(), run_dir=tmp_path, epochs=1)
    with pytest.raises(FloatingPointError, match="2 times already"):
        train(batches([8, 14]), *hooks(), run_dir=tmp_path, epochs=2, resume=True)


def test_before_the_window_is_full_only_nan_is_a_jump(tmp_path):
    hooks = [RollBack(window=50), SaveCheckpoint(every=3)]
    high = train(batches([8]), *hooks, run_dir=tmp_path / "high")
    assert high.run.progress.iter == 20
    hooks = [RollBack(window=50), SaveCheckpoint(every=3)]
    nan = train(batches([8], math.nan), *hooks, run_dir=tmp_path / "nan")
    assert nan.run.progress.iter == 19


def test_without_saves_it_goes_back_to_the_start(tmp_path, caplog):
    healed = train(batches([8]), RollBack(window=5, factor=10), run_dir=tmp_path)
    assert "without SaveCheckpoint the run goes back to where it started" in caplog.text
    assert_same_bits(healed.run.model, train(without(8)).run.model)


def test_a_run_without_a_jump_is_as_without_the_hook(tmp_path):
    watched = train(batches(), RollBack(window=5), SaveCheckpoint(every=3), run_dir=tmp_path)
    assert_same_bits(watched.run.model, train(batches()).run.model)
    assert "train/rewinds" not in watched.run.metrics


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 1}, "window must be at least 2"),
        ({"factor": 1}, "factor must be more than 1"),
        ({"skip": -1}, "skip must be at least 0"),
        ({"most": 0}, "most must be at least 1"),
        ({"metric": "val/loss"}, "not one of the training"),
    ],
)
def test_wrong_arguments_are_rejected(options, message):
    with pytest.raises(HookError, match=message):
        RollBack(**options)


def test_what_cannot_work_is_rejected_before_the_training():
    with pytest.raises(HookError, match="can be read only once"):
        train(iter(batches()), RollBack())
    with pytest.raises(HookError, match="StopOnNaN"):
        train(batches(), RollBack(), StopOnNaN(every=1))


@pytest.mark.slow
def test_ranks_go_back_together(tmp_path):
    def rank():
        hooks = [RollBack(window=5, factor=10), SaveCheckpoint(every=3), WriteMetrics()]
        healed = train(batches([8], count=12), *hooks, run_dir=tmp_path)
        return healed.run.progress.iter, [
            float(p.sum()) for p in healed.run.model.state_dict().values()
        ]

    def plain():
        model = train(without(8, count=12)).run.model
        return [float(p.sum()) for p in model.state_dict().values()]

    expected = on_ranks(plain, 3)
    for (iterations, sums), own in zip(on_ranks(rank, 3), expected, strict=True):
        assert iterations == 11
        assert sums == own


def test_clocks_and_counts_do_not_go_back(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_stopwatch, "monotonic", lambda: now[0])

    class Tick(Hook):
        def after_train_iter(self, run):
            now[0] += 60

    limit = StopAfter(minutes=25)
    hooks = [Tick(), RollBack(window=5), limit, WriteMetrics(every=1)]
    saves = SaveCheckpoint(every=5, keep=None)
    data = batches(bad=[8, 12])
    trainer = train(data, *hooks, saves, run_dir=tmp_path, epochs=9)
    # Iterations 6 to 8 and 11 to 12 were made twice.
    assert trainer.run.outcome.status == "stopped"
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["seconds"] == 25 * 60
    assert summary["iter"] == 25 - sum(one["old"] - one["new"] for one in summary["changes"])
    assert summary["metrics"]["train_epoch/rewinds"] == summary["metrics"]["train/rewinds"] == 2


# --- diagnose=True --------------------------------------------------------------------------------


def diagnosing(**options):
    saves = SaveCheckpoint(every=3, keep=None)
    return [RollBack(window=5, factor=10, diagnose=True, **options), saves, WriteMetrics()]


def verdicts(run_dir):
    lines = read_interventions(RunDir(run_dir))
    return [(one["verdict"], one["jump"]) for one in lines if one["what"] == "diagnosis"]


class Fault(Hook):
    """Makes the update of an iteration a wrong one, so many times."""

    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, at, times):
        self.at, self.times = at, times

    def after_update(self, run):
        if run.progress.iter + 1 == self.at and self.times:
            self.times -= 1
            with torch.no_grad():
                for parameter in run.model.parameters():
                    parameter.add_(30.0)


@pytest.mark.parametrize("bad", [7, 12, 13])
def test_a_bad_batch_is_found_to_be_one(bad, tmp_path):
    healed = train(batches([bad]), *diagnosing(), run_dir=tmp_path)
    assert_same_bits(healed.run.model, train(without(bad)).run.model)
    assert verdicts(tmp_path) == [("batch", bad)]
    (branch,) = read_tree(tmp_path)
    assert [(one.skip, one.verdict) for one in branch.rewinds] == [((), ""), ((bad,), "batch")]


def test_a_wrong_update_is_arithmetic_and_leaves_nothing_out(tmp_path):
    once = Fault(9, 1)
    healed = train(batches(), once, *diagnosing(), run_dir=tmp_path)
    assert healed.run.progress.iter == 20
    assert_same_bits(healed.run.model, train(batches()).run.model)
    assert verdicts(tmp_path) == [("arithmetic", 10)]


def test_a_jump_with_and_without_the_batch_comes_from_the_weights(tmp_path):
    healed = train(batches(), Fault(9, 3), *diagnosing(most=4), run_dir=tmp_path)
    assert_same_bits(healed.run.model, train(batches()).run.model)
    assert verdicts(tmp_path)[0] == ("weights", 10)
    with pytest.raises(FloatingPointError, match="comes from the weights"):
        train(batches(), Fault(9, 99), *diagnosing(most=1), run_dir=tmp_path / "always")


class Kill(Hook):
    """Ends the process, as far as the run can tell, at the n-th time that an iteration is made."""

    draws_random_numbers = False

    def __init__(self, at, times):
        self.at, self.times = at, times

    def after_train_iter(self, run):
        if run.progress.iter == self.at:
            self.times -= 1
            if not self.times:
                raise KeyboardInterrupt


@pytest.mark.parametrize("at", [11, 12, 13])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_kill_in_the_middle_of_it_changes_nothing(at, times, tmp_path):
    data = batches([13])
    with suppress(KeyboardInterrupt):  # It is not made that often.
        train(data, Kill(at, times), *diagnosing(), run_dir=tmp_path)
    healed = train(data, *diagnosing(), run_dir=tmp_path, resume=True)
    assert_same_bits(healed.run.model, train(without(13)).run.model)
    assert verdicts(tmp_path)[-1] == ("batch", 13)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_diagnose_together(ranks, tmp_path):
    clean = SaveCheckpoint(every=3, keep=None)
    on_ranks(lambda: train(batches([12]), *diagnosing(), run_dir=tmp_path / "a") and None, ranks)
    on_ranks(lambda: train(without(12), clean, run_dir=tmp_path / "b") and None, ranks)
    assert verdicts(tmp_path / "a") == [("batch", 12)]
    ends = [CheckpointStore(tmp_path / one).load("iter_18.pth")["model"] for one in "ab"]
    assert all(map(torch.equal, *(end.values() for end in ends)))


def test_a_diagnosis_needs_something_to_leave_out():
    with pytest.raises(HookError, match="skip"):
        RollBack(skip=0, diagnose=True)
