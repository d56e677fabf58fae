"""What users give instead of a part: a class, a name, a list, a function of another shape."""

import pytest
import torch
import torchmetrics
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hookloop import HookloopError, Schedule, Trainer
from hookloop.errors import ArgumentError, DataError, HookError, MetricError, ModelError
from hookloop.hooks import LogMemory, SaveCheckpoint, StopAfter


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()


def batches():
    return [(torch.ones(2, 3), torch.zeros(2, dtype=torch.long))]


def trainer(**given):
    model = nn.Linear(3, 2)
    parts = {
        "model": model,
        "train_data": batches(),
        "loss": nn.functional.cross_entropy,
        "optimizer": SGD(model.parameters(), lr=0.1),
        "max_epochs": 1,
        "default_hooks": False,
    }
    if "step" in given:
        del parts["loss"]
    return Trainer(**{**parts, **given})


DATASET = TensorDataset(torch.ones(2, 3))

WRONG = [
    ({"hooks": LogMemory()}, HookError, r"is a single hook: give a list, \[LogMemory\(...\)\]"),
    ({"hooks": LogMemory}, HookError, r"is the class LogMemory: give a list of hooks"),
    ({"hooks": "LogMemory"}, HookError, r"give a list of hooks, \[LogMemory\(...\)\]"),
    ({"hooks": lambda run: None}, HookError, "is a function: give a list of hooks"),
    ({"hooks": {"memory": LogMemory}}, HookError, r"hooks\['memory'\] is the class LogMemory"),
    ({"default_hooks": [LogMemory()]}, HookError, "must map names to hooks"),
    ({"default_hooks": {"console": False}}, HookError, "None removes a hook"),
    ({"default_hooks": {"checkpoint": SaveCheckpoint}}, HookError, r"write SaveCheckpoint\("),
    ({"metrics": [accuracy]}, MetricError, "metrics= is a list: it must map names to metrics"),
    ({"metrics": accuracy}, MetricError, "metrics= is a function: it must map names"),
    ({"metrics": {"accuracy": "accuracy"}}, MetricError, "must be a function"),
    ({"metrics": {"a": torchmetrics.MeanMetric}}, MetricError, r"write MeanMetric\(...\)"),
    ({"metrics": {"a": lambda out: 1}}, MetricError, r"called as metrics\['a'\]\(output, targets"),
    ({"metrics": {1: accuracy}}, MetricError, "a name is text"),
    ({"max_epochs": "3"}, ArgumentError, "max_epochs='3' must be a whole number or None. Write 3"),
    ({"clip_norm": "1.0"}, ArgumentError, "clip_norm='1.0' must be a number or None. Write 1"),
    ({"seed": "0"}, ArgumentError, "seed='0' must be a whole number"),
    ({"val_every": {"begin": "1"}}, ArgumentError, "begin='1' must be a whole number"),
    ({"val_every": {"at_start": "no"}}, ArgumentError, "must be True or False"),
    ({"run_dir": 3}, ArgumentError, "run_dir=3 must be text or a path"),
    ({"run_dir": ""}, ArgumentError, "run_dir='' names no directory"),
    ({"resume": 1}, ArgumentError, "resume=1 must be"),
    ({"val_every": 0}, HookloopError, "must be a positive whole number"),
    ({"model": nn.Linear}, ModelError, r"model= is the class Linear: write Linear\(...\)"),
    ({"optimizer": SGD}, ModelError, r"write SGD\(model.parameters\(\), ...\)"),
    ({"optimizer": "sgd"}, ModelError, "names are for configs"),
    ({"optimizer": [1]}, ModelError, "several as a mapping from names"),
    ({"schedule": StepLR}, ModelError, r"write StepLR\(optimizer, ...\)"),
    ({"schedule": SGD([torch.ones(1)], lr=1)}, ModelError, "must be a scheduler"),
    ({"schedule": "cosine"}, ModelError, "names are for configs"),
    ({"schedule": []}, ModelError, "several as a mapping from names"),
    ({"loss": nn.CrossEntropyLoss}, ModelError, r"write CrossEntropyLoss\(\)"),
    ({"loss": "cross_entropy"}, ModelError, "Write torch.nn.functional.cross_entropy"),
    ({"loss": "cros_entropy"}, ModelError, "Did you mean 'cross_entropy'"),
    ({"loss": torch.ones(1)}, ModelError, r"must be a function\(output, targets\)"),
    ({"loss": lambda output: output.sum()}, ModelError, r"called as loss\(output, targets\)"),
    ({"step": lambda batch: None}, ModelError, r"signature \(batch\), but it is called as step\("),
    ({"step": lambda model, batch, index: 0}, ModelError, "missing a required argument: 'index'"),
    ({"step": nn.Linear}, ModelError, "is the class Linear: it must be a function"),
    ({"step": [lambda run, batch: 0]}, ModelError, "several as a mapping from names"),
    ({"train_data": DataLoader}, DataError, r"is the class DataLoader: write DataLoader\("),
    ({"train_data": DATASET}, DataError, r"single samples: write DataLoader\(dataset"),
    ({"val_data": {"clean": DATASET}}, DataError, r"val_data\['clean'\] is TensorDataset"),
    ({"train_data": batches}, DataError, r"Write batches\(\)"),
    ({"train_data": "mnist"}, DataError, "'mnist': it must be an iterable of batches"),
    (
        {"setup": {"load_from": {"weight": 1}}},
        ModelError,
        r"Load a state that you have with model.load_state",
    ),
    (
        {"data": {"seed_samples": "worker"}},
        DataError,
        "True, False or 'workers'. Did you mean 'workers'",
    ),
    ({"setup": {"points": "on_sample"}}, HookError, "give a list of mount points"),
]


@pytest.mark.parametrize(("given", "kind", "message"), WRONG)
def test_a_part_of_the_wrong_kind_is_rejected_with_the_right_one(given, kind, message):
    with pytest.raises(kind, match=message):
        trainer(**given)


def test_what_is_right_is_accepted():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(batches())

    class Loss(nn.Module):
        def forward(self, output, targets):
            return nn.functional.cross_entropy(output, targets)

    accepted = trainer(
        train_data=Stream(),
        val_data={"clean": batches()},
        loss=Loss(),
        metrics={"accuracy": accuracy, "mean": torchmetrics.MeanMetric()},
        hooks=None,
    )
    accepted.check()
    model = nn.Linear(3, 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    schedule = Schedule(StepLR(optimizer, 1), every="1 epoch")
    step = lambda run, batch, scale=1.0: run.model(batch[0]).sum() * scale  # noqa: E731
    outcome = trainer(model=model, optimizer=optimizer, schedule=schedule, step=step,
                      hooks=(StopAfter(iterations=1),), default_hooks=None).train()  # fmt: skip
    assert outcome.status in ("completed", "stopped")
