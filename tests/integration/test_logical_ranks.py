"""Logical ranks: the same bits on any number of processes."""

import random

import numpy as np
import pytest
import torch
from tests.integration.many_ranks import KillAt, Plain, data, is_equal, make
from tests.ranks import each_rank, on_ranks
from torch.utils.data import DataLoader, Dataset, default_collate

from hookloop import Hook, Trainer
from hookloop.errors import DataError, HookError, HookloopError, ModelError
from hookloop.hooks import AverageWeights, MixUp, RecomputeBatchNorm
from hookloop.runs.policy import is_of_machine

pytestmark = pytest.mark.slow


class Augmented(Dataset):
    """Draws from three generators for each sample."""

    def __init__(self, samples=57):
        self.inner = data(samples)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        inputs, targets = self.inner[index]
        noise = torch.rand(4) + random.random() + np.random.rand()
        noise[0] = 0.0  # The sample keeps its name.
        return inputs + 0.1 * noise, targets


def settings(**changes):
    shape = {"samples": 105, "batch_size": 16}  # The last batch is cut unevenly.
    return {"parallel": {"logical": 4}, "max_epochs": 1, **shape, **changes}


def train(run_dir, **changes):
    """Train, and return weights and all metrics but those of the machine."""
    trainer, _ = make(run_dir, **changes)
    metrics = trainer.train().metrics
    kept = {name: value for name, value in metrics.items() if not is_of_machine(name)}
    return {"weights": trainer.run.model.state_dict(), "metrics": kept}


def on(size, run_dir, **changes):
    results = on_ranks(lambda: train(run_dir / str(size), **changes), size)
    assert all(is_equal(one, results[0]) for one in results)
    assert all(one["metrics"] == results[0]["metrics"] for one in results)
    return results[0]


CASES = {
    "plain": settings(),
    "six": settings(parallel={"logical": 6}, batch_size=18),
    "accumulate": settings(accumulate=3, clip_norm=0.5),
    "augmented": settings(train_data=DataLoader(Augmented(), 16, shuffle=True)),
    "workers": settings(train_data=DataLoader(Augmented(), 16, shuffle=True, num_workers=2)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_one_process(tmp_path, name):
    alone = on(1, tmp_path, **CASES[name])
    for size in (2, 3, 4):
        other = on(size, tmp_path, **CASES[name])
        assert is_equal(alone, other)
        assert other["metrics"] == alone["metrics"]


def weighted_step(run, batch):
    output = run.model(batch[0])
    counts = batch[1][:, 0] > 0
    loss = torch.nn.functional.mse_loss(output, batch[1], reduction="none")[:, 0]
    mean = (loss * counts).sum() / counts.sum().clamp(min=1)
    return {"loss": mean, "weight": counts.sum(), "largest": loss.max()}


def sometimes(run, batch):
    if batch[0][0, 1] > 0.5:  # Some parts have no loss.
        return None
    return torch.nn.functional.mse_loss(run.model(batch[0]), batch[1])


class Count:
    """A metric of the user's own, whose result depends on the order of its batches."""

    def __init__(self):
        self.reset()

    def update(self, output, targets):
        for one in (output - targets).abs().flatten():
            self.value = self.value * 0.9 + one

    def compute(self):
        return self.value

    def reset(self):
        self.value = torch.zeros(())


def torchmetrics_and_own():
    from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef

    mean = lambda output, targets: (output - targets).abs().mean()  # noqa: E731
    return {"own": Count(), "mse": MeanSquaredError(), "r": PearsonCorrCoef(), "mae": mean}


def in_steps():
    def first(run, batch):
        return torch.nn.functional.mse_loss(run.model(batch[0]), batch[1])

    def second(run, batch):
        return (run.model(batch[0]) - batch[1]).abs().mean()

    return {"a": first, "b": second}


def drawing_collate(samples):
    inputs, targets = default_collate(samples)
    noise = torch.rand(4) + random.random()
    noise[0] = 0.0
    return inputs + noise, targets


class CountingLoss(torch.nn.Module):
    """Has a buffer that a validation changes, too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, output, targets):
        self.seen += targets.abs().mean()
        return torch.nn.functional.mse_loss(output, targets) + 0.01 * self.seen


class AddNoise(Hook):
    """Draws for each part, and for the whole update."""

    takes_part_in_training = True
    ranks = "all"

    def before_forward(self, run):
        if run.phase == "train":
            inputs, targets = run.batch
            run.batch = inputs + 0.1 * torch.randn_like(inputs), targets

    def before_update(self, run):
        for parameter in run.model.parameters():
            parameter.grad += 0.01 * torch.randn_like(parameter)


MORE = {
    "collate that draws": lambda: settings(
        train_data=DataLoader(data(57), 16, shuffle=True, collate_fn=drawing_collate)
    ),
    "collate that draws in workers": lambda: settings(
        train_data=DataLoader(data(57), 16, num_workers=1, collate_fn=drawing_collate)
    ),
    "loss with a buffer": lambda: settings(loss=CountingLoss(), val_every="2 iters"),
    "average weights": lambda: settings(hooks=[AverageWeights(momentum=0.1, buffers=True)]),
    "mix up": lambda: settings(hooks=[MixUp()]),
    "hook that draws": lambda: settings(hooks=[AddNoise()]),
    "weights": lambda: settings(loss=None, step=weighted_step, accumulate=2),
    "skips": lambda: settings(loss=None, step=sometimes),
    "sums": lambda: settings(loss=torch.nn.MSELoss(reduction="sum"), clip_norm=1.0),
    "metrics": lambda: settings(metrics=torchmetrics_and_own()),
    "half": lambda: settings(precision="bf16"),
    "fewer samples than parts": lambda: settings(
        model=Plain, samples=19, batch_size=8, parallel={"logical": 4}
    ),
    "tensors in a list": lambda: settings(
        train_data=[tuple(t[i : i + 16] for t in data(80).tensors) for i in range(0, 80, 16)]
    ),
    "limit": lambda: settings(data={"limit": {"train": 3, "val": 2}}),
}


def train_both(run_dir):
    """Train two optimizers, each with a loss of its own, which leave parameters out."""
    torch.manual_seed(0)
    net = Plain()
    optimizers = {
        "a": torch.optim.SGD(net[0].parameters(), lr=0.05, momentum=0.9),
        "b": torch.optim.AdamW(net[2].parameters(), lr=1e-2),
    }
    trainer = Trainer(
        net,
        train_data=DataLoader(data(105), 16, shuffle=True),
        step=in_steps(),
        optimizer=optimizers,
        max_epochs=1,
        seed=5,
        device="cpu",
        run_dir=run_dir,
        parallel={"logical": 4},
        default_hooks={"console": None},
    )
    trainer.train()
    return {"weights": net.state_dict()}


def test_so_are_those_of_two_optimizers(tmp_path):
    ended = [on_ranks(train_both, size, tmp_path / str(size))[0] for size in (1, 2, 3)]
    assert all(is_equal(ended[0], one) for one in ended)


@pytest.mark.parametrize("name", MORE)
def test_so_are_those_of_other_trainings(tmp_path, name):
    alone = on(1, tmp_path, **MORE[name]())
    for size in (2, 3):
        other = on(size, tmp_path, **MORE[name]())
        assert is_equal(alone, other)
        assert other["metrics"] == alone["metrics"]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 4), (4, 1), (3, 1)])
def test_killed_it_continues_on_another_number_with_the_same_bits(tmp_path, before, after):
    options = settings(max_epochs=2, save_every=3)
    alone = on(1, tmp_path, **options)
    run_dir = tmp_path / "cut"
    kill = KillAt("after_update", 8, [before - 1])
    ends = each_rank(lambda: train(run_dir, **{**options, "hooks": [kill]}), before)
    assert ends[before - 1].code == -9
    continued = on_ranks(lambda: train(run_dir, **options), after)
    for result in continued:
        assert is_equal(alone, result)
        assert result["metrics"] == alone["metrics"]


def test_what_cannot_work_is_rejected_before_training(tmp_path):
    with pytest.raises(ModelError, match="accumulate='auto'"):
        train(tmp_path / "auto", **settings(accumulate="auto"))
    loader = DataLoader(Augmented(), 16, num_workers=1)
    with pytest.raises(DataError, match="seed_samples='workers'"):
        train(tmp_path / "workers", **settings(train_data=loader, data={"seed_samples": "workers"}))
    with pytest.raises(HookError, match="RecomputeBatchNorm depends on"):
        train(tmp_path / "norm", **settings(hooks=[RecomputeBatchNorm()]))
    with pytest.raises(HookloopError, match="logical is 0"):
        train(tmp_path / "none", **settings(parallel={"logical": 0}))
