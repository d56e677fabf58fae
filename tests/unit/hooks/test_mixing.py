"""`MixUp` and `CutMix` in real trainings: what they share."""

from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
from tests.tiny import assert_same_bits, record
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Trainer
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import (
    ClassificationMetrics,
    CutMix,
    MixUp,
    SaveCheckpoint,
    SaveConfusionMatrix,
)

KINDS = [MixUp, CutMix]
Pair = namedtuple("Pair", "image label")


@dataclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor


def images(count=96):
    """Bright above or below, left or right: four classes that a linear model separates."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, 1, 6, 6, generator=generator) / 2
    targets = torch.arange(count) % 4
    for image, target in zip(inputs, targets, strict=True):
        rows, columns = divmod(int(target), 2)
        image[:, 3 * rows : 3 * rows + 3, 3 * columns : 3 * columns + 3] += 2
    return inputs, targets


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()


def make_trainer(directory, *hooks, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 4))
    parts = {
        "train_data": DataLoader(TensorDataset(*images()), batch_size=16, shuffle=True),
        "val_data": DataLoader(TensorDataset(*images()), batch_size=32),
        "loss": nn.functional.cross_entropy,
        "metrics": {"accuracy": accuracy},
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.02),
        "max_epochs": 6,
        "seed": 3,
        "default_hooks": False,
        "run_dir": directory,
    }
    return Trainer(model, hooks=hooks, **(parts | options))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_learns_from_mixed_samples_and_is_evaluated_on_plain_ones(kind, tmp_path):
    seen, calls = record(["after_loss"], lambda run: (run.phase, run.batch))
    trainer = make_trainer(tmp_path, kind(4), seen)
    metrics = trainer.train().metrics
    assert metrics["val/accuracy"] > 0.95
    assert metrics["train/loss"] > metrics["val/loss"]  # Mixed samples are harder.
    for _, (phase, (inputs, targets)) in calls:
        if phase == "train":
            assert targets.shape == (len(inputs), 4)
            assert torch.allclose(targets.sum(1), torch.ones(len(inputs)))
        else:
            assert targets.dtype == torch.int64
    # A share drawn close to 0 or 1 leaves a batch almost as it was, so not all count.
    shared = [t for _, (phase, (_, t)) in calls if phase == "train" and ((t > 0).sum(1) > 1).any()]
    assert len(shared) > 20


class StopAt(Hook):
    ends_training = True

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, run):
        if run.progress.iter == self.iteration:
            run.stop("enough")


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_resume_mixes_the_same(kind, accumulate, tmp_path):
    def hooks():
        return kind(4, probability=0.7), SaveCheckpoint(every="1 iter")

    options = {"max_epochs": 2, "accumulate": accumulate}
    whole = make_trainer(tmp_path / "whole", *hooks(), **options)
    whole.train()
    make_trainer(tmp_path / "cut", *hooks(), StopAt(2), **options).train()
    resumed = make_trainer(tmp_path / "cut", *hooks(), resume=True, **options)
    resumed.train()
    assert_same_bits(resumed.run.model, whole.run.model)
    assert resumed.run.metrics.latest("val/loss") == whole.run.metrics.latest("val/loss")


@pytest.mark.parametrize("kind", KINDS)
def test_other_random_numbers_stay_what_they_were(kind, tmp_path):
    def drawn(directory, *hooks):
        seen, calls = record(["after_train_iter"], lambda run: torch.get_rng_state().clone())
        make_trainer(directory, *hooks, seen, max_epochs=1).train()
        return calls

    plain, mixed = drawn(tmp_path / "plain"), drawn(tmp_path / "mixed", kind(4))
    states = zip(plain, mixed, strict=True)
    assert all(torch.equal(without, with_hook) for (_, without), (_, with_hook) in states)


@pytest.mark.parametrize("kind", KINDS)
def test_two_seeds_mix_differently_and_one_seed_mixes_the_same(kind, tmp_path):
    def weights(name, seed):
        torch.manual_seed(0)
        data = [images(16)] * 3
        trainer = make_trainer(tmp_path / name, kind(4), train_data=data, max_epochs=1, seed=seed)
        trainer.run.model[1].p = 0.0  # No dropout, which depends on the seed as well.
        trainer.train()
        return trainer.run.model[2].weight

    assert torch.equal(weights("first", 1), weights("again", 1))
    assert not torch.equal(weights("one", 1), weights("two", 2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_data_itself_is_not_changed(kind, tmp_path):
    inputs, targets = images(32)
    batch = [inputs, targets]
    make_trainer(tmp_path, kind(4), train_data=[batch]).train()
    assert torch.equal(inputs, images(32)[0])
    assert batch[1] is targets


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("wrap", "where"),
    [
        (
            lambda inputs, targets: {"image": inputs, "label": targets, "name": "x"},
            ("image", "label"),
        ),
        (Pair, (0, 1)),
        (Pair, ("image", "label")),
        (Sample, ("image", "label")),
        (lambda inputs, targets: ("x", targets, inputs), (2, 1)),
    ],
)
def test_inputs_and_targets_are_found_in_every_kind_of_batch(kind, wrap, where, tmp_path):
    def parts(batch):
        if isinstance(where[0], int):
            return batch[where[0]], batch[where[1]]
        if isinstance(batch, dict):
            return batch["image"], batch["label"]
        return batch.image, batch.label

    def step(run, batch):
        inputs, targets = parts(batch)
        return nn.functional.cross_entropy(run.model(inputs), targets)

    batch = wrap(*images(16))
    seen, calls = record(["after_loss"], lambda run: run.batch)
    hook = kind(4, inputs=where[0], targets=where[1])
    options = {"train_data": [batch], "val_data": None, "metrics": None, "loss": None}
    make_trainer(tmp_path, hook, seen, step=step, max_epochs=1, **options).train()
    ((_, mixed),) = calls
    assert type(mixed) is type(batch)
    assert parts(mixed)[1].shape == (16, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_at_a_moment(kind, tmp_path):
    seen, calls = record(["after_train_iter"], lambda run: run.batch[1].is_floating_point())
    make_trainer(tmp_path, kind(4, until="1 epoch"), seen, max_epochs=2).train()
    assert [mixed for _, mixed in calls] == [True] * 6 + [False] * 6


@pytest.mark.slow
def test_scores_of_the_training_use_the_class_with_the_larger_share(tmp_path):
    scores = ClassificationMetrics(metrics=["f1"], streams=["train", "val"])
    metrics = make_trainer(tmp_path, MixUp(4), scores, SaveConfusionMatrix()).train().metrics
    assert 0.7 < metrics["train/f1"] <= metrics["val/f1"]


def test_both_can_be_used_together(tmp_path):
    hooks = (MixUp(4, probability=0.5), CutMix(4, probability=0.5))
    assert make_trainer(tmp_path, *hooks).train().metrics["val/accuracy"] > 0.95


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1}, "classes=1"),
        ({"alpha": 0}, "alpha=0"),
        ({"probability": 0}, "probability=0"),
        ({"probability": 1.5}, "probability=1.5"),
        ({"until": "10 min"}, "counts iterations or epochs"),
    ],
)
def test_wrong_arguments_are_rejected(kind, options, message):
    with pytest.raises(HookError, match=message):
        kind(**options)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_without_their_number_are_rejected(kind, tmp_path):
    with pytest.raises(HookError, match=r"int64\[16\].*classes="):
        make_trainer(tmp_path, kind()).train()


@pytest.mark.parametrize("kind", KINDS)
def test_targets_beyond_the_classes_are_rejected(kind, tmp_path):
    with pytest.raises(HookError, match="0.*3.*classes=3"):
        make_trainer(tmp_path, kind(3)).train()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_the_parts_is_shown(kind, tmp_path):
    with pytest.raises(HookError, match=r"'image'.*\[float32"):
        make_trainer(tmp_path, kind(4, inputs="image")).train()
