"""A validation that is asked for, or due by a clock, leaves no trace in the training."""

import random

import numpy as np
import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_data
from torch.utils.data import DataLoader, Dataset, Sampler

from hookloop import Hook, Trainer
from hookloop.hooks import RecomputeBatchNorm, SaveCheckpoint
from hookloop.requests import without
from hookloop.trainer.settings import gathered


class Counter(torch.nn.Module):
    """Counts its calls in a buffer, in evaluation mode too, and computes with the count."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs):
        self.calls += 1
        return inputs * (1 + self.calls / 1000)


def make_model():
    torch.manual_seed(3)
    layers = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), Counter()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, 1))


class Noisy(Dataset):
    """Samples with noise from the generators of the process, or from one of its own."""

    def __init__(self, rng=None, count=12):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(5))
        self.rng = rng

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        noise = torch.rand(4) + random.random() + np.random.rand()
        noise += self.rng.random() if self.rng is not None else 0
        return self.inputs[index] + 0.1 * noise, self.inputs[index].sum(0, keepdim=True)


class OwnSampler(Sampler):
    """Draws an order from a generator of its own and from NumPy's, and counts its passes."""

    def __init__(self, count):
        self.count, self.passes = count, 0
        self.rng = random.Random(0)

    def __iter__(self):
        self.passes += 1
        order = [*range(self.count)]
        self.rng.shuffle(order)
        return iter([*order[self.passes % 2 :], int(np.random.randint(self.count))])

    def __len__(self):
        return self.count


LOADERS = {
    "shuffled": lambda: DataLoader(Noisy(), batch_size=4, shuffle=True),
    "own generator": lambda: DataLoader(
        Noisy(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(9)
    ),
    "workers": lambda: DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2),
    "persistent workers": lambda: DataLoader(
        Noisy(), batch_size=4, shuffle=True, num_workers=1, persistent_workers=True
    ),
    "own sampler": lambda: DataLoader(Noisy(), batch_size=4, sampler=OwnSampler(12)),
    "data set with a generator": lambda: DataLoader(
        Noisy(np.random.default_rng(2)), batch_size=4, shuffle=True
    ),
}


class AskAt(Hook):
    """Asks for a validation after some iterations, and notes the results of all."""

    takes_part_in_training = True

    def __init__(self, *iterations):
        self.iterations = iterations
        self.asked = []
        self.seen = {}

    def before_train(self, run):
        if 0 in self.iterations and run.progress.iter == 0:
            run.validate()

    def after_train_iter(self, run):
        if run.progress.iter in self.iterations:
            run.validate()

    def after_val_epoch(self, run, metrics):
        # At the end of an epoch both are made: first the one that was asked for.
        self.asked.append(run.progress.iter)
        self.seen[run.progress.iter] = metrics["val/loss"]


def train(run_dir, *asked, loader="shuffled", hooks=(), **options):
    ask = AskAt(*asked)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    settings = {"max_epochs": 3, "default_hooks": False, "val_data": LOADERS[loader]()}
    settings |= {"loss": torch.nn.functional.mse_loss, **options}
    trainer = Trainer(
        model,
        train_data=DataLoader(Noisy(), batch_size=4, shuffle=True),
        optimizer=optimizer,
        run_dir=run_dir,
        hooks=[ask, *hooks],
        **gathered(settings),
    )
    trainer.train()
    return {name: one.clone() for name, one in model.state_dict().items()}, ask


def assert_equal(one, other):
    assert [name for name, value in one.items() if not torch.equal(value, other[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("asked", [(0,), (2,), (3,), (1, 4, 6, 8, 9)])
def test_asking_changes_neither_the_weights_nor_what_planned_validations_find(
    tmp_path, loader, asked
):
    plain, planned = train(tmp_path / "plain", loader=loader)
    weights, ask = train(tmp_path / "asked", *asked, loader=loader)
    assert_equal(plain, weights)
    assert {at: ask.seen[at] for at in planned.seen} == planned.seen
    assert set(asked) <= set(ask.asked)


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["shuffled", "persistent workers", "own sampler"])
def test_nor_does_it_where_streams_are_validated_side_by_side(tmp_path, loader):
    def one(name, *asked):
        def step(run, batch):
            parts = batch.values() if isinstance(batch, dict) else [batch]
            return sum(torch.nn.functional.mse_loss(run.model(x), y) for x, y in parts)

        streams = {"a": LOADERS[loader](), "b": LOADERS["shuffled"]()}
        options = {"step": step, "loss": None, "val_data": streams, "data.val_mix": "zip"}
        return train(tmp_path / name, *asked, **options)

    (plain, planned), (weights, ask) = one("plain"), one("asked", 0, 2, 4, 6)
    assert_equal(plain, weights)
    if "workers" not in loader:  # What workers draw is not seeded where streams are zipped.
        assert {at: ask.seen[at] for at in planned.seen} == planned.seen


@pytest.mark.slow
@pytest.mark.parametrize("seed_samples", [False, "workers"])
def test_nor_does_it_with_the_random_numbers_of_workers(tmp_path, seed_samples):
    options = {"loader": "persistent workers", "data.seed_samples": seed_samples}
    plain, planned = train(tmp_path / "plain", **options)
    weights, ask = train(tmp_path / "asked", 1, 5, **options)
    assert_equal(plain, weights)
    if seed_samples:  # Otherwise nobody can put back what the workers draw.
        assert {at: ask.seen[at] for at in planned.seen} == planned.seen


def test_nor_does_it_where_validation_is_planned_by_iterations(tmp_path):
    plain, planned = train(tmp_path / "plain", val_every=2)
    # Asked for where one is planned anyway, it is that one.
    weights, ask = train(tmp_path / "asked", 1, 4, 5, val_every=2)
    assert_equal(plain, weights)
    assert {at: ask.seen[at] for at in planned.seen} == planned.seen
    assert ask.asked == sorted({*planned.asked, 1, 5})


def test_a_clock_does_not_change_it_either(tmp_path):
    never, _ = train(tmp_path / "never", val_every="10 h")
    always, ask = train(tmp_path / "always", val_every="0.000001 s")
    assert_equal(never, always)
    assert ask.asked == list(range(1, 10))


def test_modes_and_statistics_are_those_of_before(tmp_path):
    class Frozen(Hook):
        takes_part_in_training = True

        def before_train_epoch(self, run):
            run.model[1].eval()

    hooks = [Frozen(), RecomputeBatchNorm(8, at="validation")]
    plain, _ = train(tmp_path / "plain", hooks=hooks, val_every="10 h")
    asked, _ = train(tmp_path / "asked", 1, 5, hooks=hooks, val_every="10 h")
    assert_equal(plain, asked)


def test_nor_does_what_model_step_and_data_count_in_plain_attributes(tmp_path):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.last = 0, []

        def forward(self, inputs):
            self.calls += 1
            self.last.append(self.calls)
            return inputs * (1 + sum(self.last[-2:]) / 1000)

    class Fading(Noisy):
        reads = 0

        def __getitem__(self, index):
            self.reads += 1
            inputs, targets = super().__getitem__(index)
            return inputs * (1 + self.reads / 1000), targets

    def one(name, *asked):
        factor = 1.0

        def step(run, batch):
            nonlocal factor
            factor *= 0.99
            return factor * torch.nn.functional.mse_loss(run.model(batch[0]), batch[1])

        for seed in (torch.manual_seed, random.seed, np.random.seed):
            seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 1), Counting())
        data = Fading()
        Trainer(
            model,
            train_data=DataLoader(data, batch_size=4, shuffle=True),
            val_data=DataLoader(data, batch_size=4),  # The same data set, as of a split.
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            step=step,
            max_epochs=2,
            run_dir=tmp_path / name,
            hooks=[AskAt(*asked)],
            default_hooks=False,
        ).train()
        return {"weight": model[0].weight, "count": torch.tensor([model[1].calls, data.reads])}

    assert_equal(one("plain"), one("asked", 1, 2, 4))


def test_nor_does_what_a_forward_makes_when_it_first_evaluates(tmp_path):
    class Lazy(torch.nn.Module):
        def forward(self, inputs):
            if not self.training and not hasattr(self, "scale"):
                self.scale = inputs.abs().mean().item()
            return inputs * getattr(self, "scale", 1.0)

    def one(name, *asked):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 1), Lazy())
        Trainer(
            model,
            train_data=DataLoader(make_data(12).dataset, batch_size=4),
            val_data=make_data(8),
            val_every="2 epochs",
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            loss=torch.nn.functional.mse_loss,
            max_epochs=3,
            run_dir=tmp_path / name,
            hooks=[AskAt(*asked)],
            default_hooks=False,
        ).train()
        return {"weight": model[0].weight, "scale": torch.tensor(model[1].scale)}

    assert_equal(one("plain"), one("asked", 1, 2))


def test_a_stream_that_was_asked_for_does_not_disturb_one_that_is_planned(tmp_path):
    streams = {"a": LOADERS["shuffled"](), "b": make_data(8)}

    def one(name, **intervals):
        torch.manual_seed(0)
        model = make_model()
        ask = AskAt()
        seen = []
        ask.after_val_epoch = lambda run, metrics: seen.append((run.progress.iter, dict(metrics)))
        Trainer(
            model,
            train_data=make_data(12, shuffle=True),
            val_data=streams,
            val_every=intervals,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            loss=torch.nn.functional.mse_loss,
            max_epochs=2,
            run_dir=tmp_path / name,
            hooks=[ask],
            default_hooks=False,
        ).train()
        return model.state_dict(), [(at, got) for at, got in seen if "val/b/loss" in got]

    plain, of_plain = one("plain", a="10 h", b="1 iter")
    weights, of_timed = one("timed", a="0.000001 s", b="1 iter")
    assert_equal(plain, weights)
    assert of_plain[:-1] == of_timed[: len(of_plain) - 1]


@pytest.mark.parametrize("cut_at", [3, 5, 8])
def test_a_resume_after_one_that_was_asked_for_is_exact(tmp_path, cut_at):
    whole, _ = train(tmp_path / "whole")

    class Stop(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter == cut_at:
                run.validate()
                run.save()
                run.stop("cut")

    train(tmp_path / "run", hooks=[Stop(), SaveCheckpoint()])
    weights, _ = train(tmp_path / "run", hooks=[SaveCheckpoint()], resume=True)
    assert_equal(whole, weights)


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["shuffled", "own generator", "own sampler"])
def test_asking_changes_nothing_on_two_ranks(tmp_path, loader):
    plain = on_ranks(lambda: train(tmp_path / "plain", loader=loader)[0], 2)
    asked = on_ranks(lambda: train(tmp_path / "asked", 2, 3, 7, loader=loader)[0], 2)
    for one, other in zip(plain, asked, strict=True):
        assert_equal(one, other)


def test_what_is_left_of_a_wish():
    assert without(True, False, ["a", "b"]) is True
    assert without(True, True, ["a", "b"]) is False
