"""The largest batch is found, and the training afterwards is the same."""

from queue import SimpleQueue

import numpy as np
import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_trainer
from torch.utils.data import DataLoader, Dataset, IterableDataset

from hookloop import find_batch
from hookloop.errors import DataError, HookloopError, ModelError
from hookloop.hooks import SaveCheckpoint
from hookloop.parallel.world import World, assume
from hookloop.short_runs.find_batch import is_out_of_memory


class Limited(torch.nn.Module):
    """Has room for so many samples, draws random numbers and keeps statistics."""

    def __init__(self, room, error=torch.OutOfMemoryError):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Sequential(
            torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 8), torch.nn.Dropout(0.3),
            torch.nn.Linear(8, 1),
        )  # fmt: skip
        self.register_buffer("seen", torch.zeros(()), persistent=False)
        self.room, self.error = room, error
        self.sizes = SimpleQueue()  # A list would be put back after the search.

    def forward(self, inputs):
        self.sizes.put(len(inputs))
        self.seen += len(inputs)
        if len(inputs) > self.room:
            raise self.error("no memory: out of memory")
        return self.inner(inputs)


class Noisy(Dataset):
    """Draws from the process's generators and from its own."""

    def __init__(self, samples=100):
        self.samples = samples
        self.generator = np.random.default_rng(0)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        noise = float(np.random.rand() + self.generator.random())
        return torch.randn(4) + noise, torch.full((1,), float(index))


def noisy_trainer(room=100, *, dataset=None, optimizer=torch.optim.Adam, **options):
    model = Limited(room)
    loader = DataLoader(dataset or Noisy(), batch_size=8, shuffle=True)
    options = {"max_epochs": 2, "clip_norm": 1.0} | options
    return make_trainer(
        model=model, train_data=loader, optimizer=optimizer(model.parameters(), lr=0.01), **options
    )


@pytest.mark.parametrize("room", [1, 2, 3, 8, 21, 63, 99])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError, RuntimeError])
def test_the_largest_size_is_found(room, error):
    trainer = make_trainer(model=Limited(room, error), train_data=make_data(100, 7))
    if room == 1:  # Batch norm cannot train on one sample, so it is left out.
        trainer.run.model.inner[0] = torch.nn.Identity()
    found = find_batch(trainer, iterations=1)
    assert found.largest == room
    assert found.is_limited
    queue = trainer.run.model.sizes
    tried = {queue.get() for _ in range(queue.qsize())}
    assert [trial.size for trial in found.trials] == sorted(tried)
    for trial in found.trials:
        assert trial.fits == (trial.size <= room)
        assert (trial.seconds is not None) == (trial.samples_per_second is not None) == trial.fits


@pytest.mark.parametrize(
    ("most", "sizes"), [(None, [2, 4, 8, 10]), (7, [2, 4, 7]), (1, [1]), (99, [2, 4, 8, 10])]
)
def test_without_a_limit_it_ends_at_the_most_or_at_the_data(most, sizes):
    trainer = make_trainer(train_data=make_data(10))
    found = find_batch(trainer, most=most)
    assert [trial.size for trial in found.trials] == sizes
    assert (found.largest, found.most, found.is_limited) == (sizes[-1], sizes[-1], False)
    assert found.fastest in sizes


def test_nothing_fits():
    found = find_batch(make_trainer(model=Limited(0), train_data=make_data(10)))
    assert (found.largest, found.fastest, found.is_limited) == (0, 0, True)
    assert [trial.size for trial in found.trials] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9), "precision": "bf16"},
        {"accumulate": "auto"},
        {"accumulate": {0: 1, 3: 2}},
    ],
)
def test_a_training_afterwards_ends_with_the_same_bits(options, tmp_path):
    plain, searched = noisy_trainer(**options), noisy_trainer(room=30, **options)
    for trainer in (plain, searched):
        torch.manual_seed(7)
        np.random.seed(7)
        if trainer is searched:
            assert find_batch(trainer).largest == 30
            assert trainer.run.metrics.names() == []
            assert all(p.grad is None for p in trainer.run.model.parameters())
        trainer.train()
    assert_same_bits(plain.run.model, searched.run.model)
    assert plain.run.model.seen == searched.run.model.seen
    assert plain.run.metrics.all_latest() == searched.run.metrics.all_latest()
    # And in the middle of a training, whose optimizer has a state by now.
    assert find_batch(searched).largest == 30
    plain.train(max_epochs=3)
    searched.train(max_epochs=3)
    assert_same_bits(plain.run.model, searched.run.model)
    assert list(tmp_path.iterdir()) == []


def test_hooks_do_not_act_and_nothing_is_written(tmp_path):
    trainer = noisy_trainer(hooks=[SaveCheckpoint(every=1)], run_dir=tmp_path / "run")
    trainer.run.model.eval()
    find_batch(trainer)
    assert not trainer.run.model.training
    assert trainer.run.progress.iter == 0
    assert list(tmp_path.iterdir()) == []


def test_another_error_is_shown_with_the_size_and_leaves_no_trace():
    trainer = make_trainer(model=Limited(5, ValueError), train_data=make_data(10))
    before = trainer.run.model.seen.clone()
    with pytest.raises(ValueError, match="no memory") as caught:
        find_batch(trainer)
    assert "while a batch of 8 samples was tried" in caught.value.__notes__
    assert torch.equal(trainer.run.model.seen, before)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.zeros(4)] * 4)


@pytest.mark.parametrize(
    "data",
    [
        list(make_data()),
        DataLoader(Stream(), batch_size=2),
        DataLoader(make_data().dataset, batch_size=None),
    ],
)
def test_data_of_which_no_batch_can_be_made_is_rejected(data):
    with pytest.raises(DataError, match="needs a DataLoader with a batch_size"):
        find_batch(make_trainer(train_data=data))


def test_what_cannot_be_searched_is_rejected():
    with pytest.raises(DataError, match="train_data has streams: give one of them"):
        find_batch(
            make_trainer(train_data={"a": make_data(), "b": make_data()}, data={"mix": "in order"})
        )
    with pytest.raises(DataError, match="nothing to train on"):
        find_batch(make_trainer(train_data=None))
    with pytest.raises(ModelError, match="There is no optimizer"):
        find_batch(make_trainer(optimizer=None))
    with pytest.raises(HookloopError, match="at least 1"):
        find_batch(make_trainer(), most=0)
    with assume(World(0, 2, 0, 2)):
        trainer = make_trainer()
    with pytest.raises(HookloopError, match="works in one process"):
        find_batch(trainer)


@pytest.mark.parametrize(
    ("error", "says_so"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (MemoryError(), True),
        (RuntimeError("shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_told_from_others(error, says_so):
    assert is_out_of_memory(error) == says_so
