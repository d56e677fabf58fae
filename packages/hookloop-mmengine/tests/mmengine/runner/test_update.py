"""Iterations in which the model makes the update, and evaluators as metrics."""

import numpy as np
import pytest
import torch
from tests.mmengine.parts import Net, Scripted
from tests.tiny import record

from hookloop.engine.hook import Hook as NativeHook
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.runner.update import ModelUpdate, as_number


def test_the_model_makes_the_update(run):
    steps = []

    class Noting(Net):
        def train_step(self, data, optim_wrapper):
            before = float(self.linear.weight.detach())
            output = super().train_step(data, optim_wrapper)
            steps.append((before, float(self.linear.weight.detach())))
            return output

        def val_step(self, data):
            steps.append("val")
            return super().val_step(data)

        def test_step(self, data):
            steps.append("test")
            return super().test_step(data)

    runner = run(limit=1, model=Noting())
    runner.test()
    assert [step if isinstance(step, str) else "train" for step in steps] == [
        "train", "train", "val", "val", "test", "test",
    ]  # fmt: skip
    (first, second), (third, fourth) = steps[:2]
    assert first != second == third != fourth


def test_outputs_of_a_step_are_metrics_of_the_run(run):
    hook, calls = record(["after_train_iter"], lambda run: sorted(run.output))
    run(hook, limit=1)
    assert calls == [("after_train_iter", ["loss"])] * 2


def test_native_hooks_are_called_in_such_a_run(run):
    hook, calls = record(["after_backward", "after_update"], lambda run: run.progress.iter)
    run(hook, limit=1)
    assert [point for point, _ in calls].count("after_update") == 2


def test_hooks_of_mmengine_get_all_metrics_and_native_ones_the_numbers(run):
    metrics = {
        "acc": 0.5, "count": np.int64(3), "tensor": torch.tensor([2.0]), "none": None,
        "table": [1, 2], "matrix": np.ones(2),
    }  # fmt: skip

    class Theirs(Hook):
        def after_val_epoch(self, runner, metrics=None):
            self.seen = dict(metrics)

    class Ours(NativeHook):
        def after_val_epoch(self, run, metrics):
            self.seen = dict(metrics)

    theirs, ours = Theirs(), Ours()
    run(theirs, ours, limit=1, val_evaluator=[Scripted(metrics)])
    assert theirs.seen.keys() == metrics.keys()
    assert ours.seen == {"val/acc": 0.5, "val/count": 3.0, "val/tensor": 2.0}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (True, 1.0),
        (0.5, 0.5),
        (np.float32(2), 2.0),
        (np.array([[3]]), 3.0),
        (torch.tensor(4), 4.0),
        (np.ones(2), None),
        (torch.ones(2), None),
        ("1", None),
        (None, None),
        ([1], None),
    ],
)
def test_what_counts_as_a_number(value, number):
    assert as_number(value) == number


@pytest.mark.parametrize(("counts", "kept"), [(1, False), (2, True)])
def test_gradients_wait_only_with_accumulation(run, counts, kept):
    wrapper = {"optimizer": {"type": "SGD", "lr": 0.1}, "accumulative_counts": counts}
    runner = run(limit=1, optim_wrapper=wrapper)
    update = ModelUpdate(runner, [runner.optim_wrapper.optimizer])
    assert update.keeps_gradients is kept
    assert runner.optim_wrapper.inner_count == 2
