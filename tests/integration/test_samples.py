"""The samples of an iteration are found without training, whatever the loader is."""

import json
import random

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tests.ranks import on_ranks
from torch import nn
from torch.nn import functional
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from hookloop import Hook, Trainer, hooks, samples
from hookloop.cli.main import cli
from hookloop.short_runs.route import ReplayError

COUNT, SIZE = 88, 8


class Numbered(Dataset):
    """Samples that carry their own number, and draw random numbers as they are read."""

    def __init__(self, count=COUNT, first=0):
        self.count, self.first = count, first

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        noise = 0.1 * torch.rand(6) + random.random() + np.random.rand()
        return noise.float() + index, index % 3, self.first + index

    def id(self, index):
        return f"sample-{self.first + index}"


class Own(Sampler):
    def __iter__(self):
        return iter(random.sample(range(COUNT), COUNT))

    def __len__(self):
        return COUNT


class Counting(Sampler):
    """Depends on how often it was used, and draws while it is read."""

    def __init__(self):
        self.used = 0

    def __iter__(self):
        self.used += 1
        for _ in range(COUNT):
            yield (self.used + int(torch.randint(COUNT, ()))) % COUNT

    def __len__(self):
        return COUNT


class Groups(Sampler):
    """A batch sampler with batches of several sizes."""

    def __iter__(self):
        order = torch.randperm(COUNT).tolist()
        while order:
            size = 4 + 4 * int(torch.randint(2, ())) if len(order) > 8 else len(order)
            yield order[:size]
            order = order[size:]


class Note(Hook):
    """Notes the numbers that the batches of each iteration carry."""

    def __init__(self):
        self.seen = {}

    def after_forward(self, run):
        if run.phase == "train":
            number = run.progress.iter + 1
            batch = run.batch
            parts = batch.values() if isinstance(batch, dict) else [batch]
            self.seen.setdefault(number, []).extend(n for part in parts for n in part[2].tolist())


def step(run, batch):
    parts = batch.values() if isinstance(batch, dict) else [batch]
    return sum(functional.cross_entropy(run.model(part[0]), part[1]) for part in parts)


def loader(first=0, **options):
    options = {"shuffle": True} | options if "sampler" not in options else options
    return DataLoader(Numbered(first=first), batch_size=SIZE, **options)


def parts(run_dir=None, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))
    options = {name: make() if callable(make) else make for name, make in options.items()}
    return {
        "model": model,
        "train_data": loader(),
        "step": step,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05),
        "max_iters": 60,
        "seed": 3,
        "default_hooks": {
            "console": None,
            "checkpoint": hooks.SaveCheckpoint(every="3 epochs", keep=None),
        },
        "hooks": [],
    } | options


def train(run_dir, **options):
    note = Note()
    given = parts(**options)
    trainer = Trainer(**(given | {"run_dir": run_dir, "hooks": [*given["hooks"], note]}))
    trainer.train()
    return note.seen


def batched(sampler):
    return DataLoader(Numbered(), batch_sampler=sampler)


CELLS = {
    "shuffle": {},
    "fixed": {"train_data": lambda: loader(shuffle=False)},
    "workers": {"train_data": lambda: loader(num_workers=2)},
    "persistent": {"train_data": lambda: loader(num_workers=2, persistent_workers=True)},
    "workers' own numbers": {
        "train_data": lambda: loader(num_workers=1),
        "data": {"seed_samples": "workers"},
    },
    "own generator": {
        "train_data": lambda: loader(generator=torch.Generator().manual_seed(5)),
    },
    "replacement": {"train_data": lambda: loader(sampler=RandomSampler(range(COUNT), True, 50))},
    "weighted": {
        "train_data": lambda: loader(sampler=WeightedRandomSampler([1.0] * COUNT, COUNT)),
    },
    "subset": {"train_data": lambda: loader(sampler=SubsetRandomSampler(range(1, COUNT)))},
    "distributed": {
        "train_data": lambda: loader(sampler=DistributedSampler(range(COUNT), 1, 0)),
    },
    "own sampler": {"train_data": lambda: loader(sampler=Own())},
    "own sampler that counts": {"train_data": lambda: loader(sampler=Counting())},
    "own batch sampler": {"train_data": lambda: batched(Groups())},
    "batch sampler of torch": {
        "train_data": lambda: batched(BatchSampler(SequentialSampler(range(COUNT)), 5, True)),
    },
    "accumulation": {"accumulate": 3},
    "accumulation that grows": {"accumulate": {0: 1, 7: 2, 30: 3}},
    "epochs of their own length": {"data": {"epoch_iters": 7}},
    "limited": {"data": {"limit": {"train": 4}}},
    "weights": {
        "train_data": lambda: {"a": loader(), "b": loader(first=1000)},
        "data": lambda: {"mix": {"a": 3, "b": 1}, "epoch_iters": 10},
    },
    "zip": {"train_data": lambda: {"a": loader(), "b": loader(first=1000)}, "data": {"mix": "zip"}},
    "cycle": {
        "train_data": lambda: {"a": loader(), "b": DataLoader(Numbered(24, 1000), 8, True)},
        "data": {"mix": "cycle"},
    },
    "in order": {
        "train_data": lambda: {"a": loader(), "b": loader(first=1000)},
        "data": {"mix": "in order"},
        "accumulate": 2,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
def test_the_samples_are_those_that_the_data_set_noted(cell, tmp_path):
    options = CELLS[cell]
    seen = train(tmp_path / "run", **options)
    found = samples(tmp_path / "run", at="1:60", make=lambda _: parts(**options))
    given = parts(**options)["train_data"]
    firsts = {"": 0, "a": 0, "b": 1000}
    del given
    for iteration in (1, 2, 7, 11, 12, 27, 31, 45, 58, 60):
        own = [firsts[one.stream] + one.index for one in found.samples if one.iter == iteration]
        assert own == seen[iteration], iteration
    # From a checkpoint as well: one lies some passes before.
    near = samples(tmp_path / "run", at=58, make=lambda _: parts(**options))
    assert [one for one in found.samples if one.iter == 58] == list(near.samples)
    assert near.samples[0].id == f"sample-{seen[58][0]}"


def test_passes_of_few_iterations_are_known(tmp_path):
    options = {"train_data": lambda: DataLoader(Numbered(16), 8, True)}
    seen = train(tmp_path / "run", **options)
    found = samples(tmp_path / "run", at="1:60", make=lambda _: parts(**options))
    assert [one.index for one in found.samples] == [n for held in seen.values() for n in held]


def test_after_going_back_the_samples_are_those_of_the_present_branch(tmp_path):
    class Back(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            if run.progress.iter == 37 and not run._internals.changes:
                run.rewind(33, skip=[35, 36], reason="test")

    note = Note()
    given = parts()
    Trainer(**(given | {"run_dir": tmp_path / "run", "hooks": [Back(), note]})).train()
    found = samples(tmp_path / "run", at="34:60", make=lambda _: parts())
    for iteration in range(34, 61):
        own = [one.index for one in found.samples if one.iter == iteration]
        assert own == note.seen[iteration][-len(own) :], iteration


def test_a_resumed_run_is_walked_through_its_starts(tmp_path):
    first = train(tmp_path / "run", max_iters=30)
    rest = train(tmp_path / "run", resume=True)
    found = samples(tmp_path / "run", at="1:60", make=lambda _: parts())
    both = [first[n] if n <= 30 else rest[n] for n in range(1, 61)]
    assert [one.index for one in found.samples] == [n for held in both for n in held]


def test_fingerprints_confirm_the_samples_and_refute_others(tmp_path):
    class Wilful(Sampler):
        losses = 0

        def __iter__(self):
            for number in range(COUNT):
                yield (number + Wilful.losses) % COUNT

        def __len__(self):
            return COUNT

    class Tell(Hook):
        takes_part_in_training = True

        def after_train_iter(self, run):
            Wilful.losses += int(run.progress.iter == 13)

    own = {"hooks": lambda: [hooks.RecordFingerprints(every=5)]}
    train(tmp_path / "one", **own)
    found = samples(tmp_path / "one", at=57, make=lambda _: parts(**own))
    assert found.confirmed == [35, 40, 45, 50, 55]
    own = {
        "train_data": lambda: loader(sampler=Wilful()),
        "hooks": lambda: [hooks.RecordFingerprints(every=5), Tell()],
    }
    train(tmp_path / "two", **own)
    Wilful.losses = 0
    with pytest.raises(ReplayError, match="iteration 15 are not those"):
        samples(tmp_path / "two", at=20, make=lambda _: parts(**own))


class Streamed(IterableDataset):
    def __iter__(self):
        data = Numbered()
        return (data[index] for index in range(COUNT))


def test_data_without_indices_has_positions(tmp_path):
    options = {"train_data": lambda: DataLoader(Streamed(), batch_size=8)}
    train(tmp_path / "run", **options)
    found = samples(tmp_path / "run", at="11:13", make=lambda _: parts(**options))
    assert [one.index for one in found.samples] == [10, 0, 1]
    assert "iterable" in found.only_positions[""]


def test_what_cannot_be_found_is_said(tmp_path):
    options = {"train_data": lambda: iter(loader())}
    train(tmp_path / "run", max_iters=10, **options)
    with pytest.raises(ReplayError, match="only once"):
        samples(tmp_path / "run", at=4, make=lambda _: parts(max_iters=10, **options))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_have_their_parts_of_the_global_batch(tmp_path, ranks):
    seen = on_ranks(lambda: train(tmp_path / "run"), ranks)
    found = samples(tmp_path / "run", at="1:60", make=lambda _: parts())
    for iteration in (1, 7, 12, 34, 45, 60):
        for rank in range(ranks):
            own = [one.index for one in found.samples if (one.iter, one.rank) == (iteration, rank)]
            assert own == seen[rank][iteration], (iteration, rank)


def test_the_command_shows_the_samples(tmp_path, monkeypatch):
    (tmp_path / "eight_samples.py").write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "def data():\n"
        "    return DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8, 1)), 4, True)\n"
    )
    (tmp_path / "config.yaml").write_text(
        "import_path: ['.']\n"
        "model: {type: torch.nn.Linear, in_features: 4, out_features: 1}\n"
        "train_data: {type: eight_samples.data}\n"
        "loss: torch.nn.functional.mse_loss\n"
        "optimizer: {type: torch.optim.SGD, lr: 0.1}\n"
        "max_iters: 6\nseed: 1\nrun_dir: run\n"
    )
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(cli, ["train", "config.yaml"]).exit_code == 0
    shown = runner.invoke(cli, ["samples", "run", "--iter", "5", "--json"])
    found = json.loads(shown.stdout)
    assert found["iters"] == [5, 5] and found["exact"] and len(found["samples"]) == 4
    both = json.loads(runner.invoke(cli, ["samples", "run", "--iter", "5:6", "--json"]).stdout)
    assert sorted(one["index"] for one in both["samples"]) == [*range(8)]
    assert runner.invoke(cli, ["samples", "run", "--iter", "9"]).exit_code == 2
