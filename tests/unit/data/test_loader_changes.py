"""What a hook changes in the user's loader reaches the copy that is read."""

import pytest
import torch
from tests.names import iter_file
from tests.tiny import make_trainer, weights
from torch.utils.data import DataLoader, Dataset, IterableDataset, SequentialSampler

from hookloop import Hook
from hookloop.data.reading.loader_changes import LoaderChanges
from hookloop.data.stream import Stream
from hookloop.hooks import SaveCheckpoint


class Scaled(Dataset):
    def __init__(self):
        self.factor = 1

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * self.factor


class Streamed(IterableDataset):
    def __init__(self):
        self.factor = 1

    def __iter__(self):
        return (index * self.factor for index in range(4))


def read(source):
    return [batch.tolist() for batch in source.read()]


PERSISTENT = {"num_workers": 1, "persistent_workers": True}


@pytest.mark.parametrize("kind", [Scaled, Streamed])
def test_persistent_workers_start_again_when_they_are_asked_to(kind):
    loader = DataLoader(kind(), batch_size=2, **PERSISTENT)
    source = Stream(loader, "train_data")
    try:
        assert read(source) == [[0, 1], [2, 3]]
        loader.dataset.factor = 10
        assert read(source) == [[0, 1], [2, 3]]  # As in torch: the workers have a copy.
        source.restart_workers()
        assert read(source) == [[0, 10], [20, 30]]
        assert read(source) == [[0, 10], [20, 30]]
    finally:
        source.close()
    assert loader._iterator is None


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, PERSISTENT])
def test_a_new_collate_fn_is_used_from_the_next_pass_on(options):
    loader = DataLoader(Scaled(), batch_size=2, **options)
    source = Stream(loader, "train_data")
    try:
        assert read(source) == [[0, 1], [2, 3]]
        loader.collate_fn = lambda samples: torch.tensor(samples) + 100
        assert read(source) == [[100, 101], [102, 103]]
    finally:
        source.close()


def test_another_sampler_and_data_set_are_used_from_the_next_pass_on():
    loader = DataLoader(Scaled(), batch_size=None, sampler=[0, 1])
    source = Stream(loader, "train_data")
    assert [int(sample) for sample in source.read()] == [0, 1]
    loader._DataLoader__initialized = False
    loader.dataset, loader.sampler = torch.arange(50, 54), SequentialSampler(range(4))
    assert [int(sample) for sample in source.read()] == [50, 51, 52, 53]


def test_a_loader_that_ranks_share_is_followed_too():
    loader = DataLoader(Scaled(), batch_size=2)
    source = Stream(loader, "train_data")
    source.share_among(1, 2)
    assert read(source) == [[1], [3]]
    loader.collate_fn = lambda samples: torch.tensor(samples) + 100
    assert read(source) == [[101], [103]]


def test_the_user_may_read_the_loader_meanwhile():
    loader = DataLoader(Scaled(), batch_size=2, **PERSISTENT)
    source = Stream(loader, "train_data")
    try:
        batches = source.read()
        assert next(batches).tolist() == [0, 1]
        assert loader._iterator is None  # Nothing of ours is in it.
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
        assert next(batches).tolist() == [2, 3]
    finally:
        source.close()
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_what_is_not_set_is_not_a_change():
    loader = DataLoader(Scaled(), batch_size=2)
    followed = LoaderChanges(loader)
    assert followed.take_changes() == {}
    loader.timeout = 3
    assert followed.take_changes() == {"timeout": 3}
    assert followed.take_changes() == {}


class Switch(Hook):
    """Changes what the workers have a copy of, and starts new ones."""

    def __init__(self):
        self.is_done = False

    def before_train_epoch(self, run):
        if run.progress.epoch >= 1 and not self.is_done:
            run.train_data.data.dataset.factor, self.is_done = 10.0, True
            run.train_data.restart_workers()


class Noisy(Scaled):
    def __getitem__(self, index):
        return torch.rand(4) * self.factor, torch.ones(1)


@pytest.mark.slow
@pytest.mark.parametrize("seed_samples", [True, "workers"])
def test_a_switch_with_new_workers_is_resumed_exactly(tmp_path, seed_samples):
    def train(directory, **options):
        loader = DataLoader(Noisy(), batch_size=1, shuffle=True, **PERSISTENT)
        keeps = SaveCheckpoint(every=1, keep=None)
        trainer = make_trainer(
            train_data=loader, hooks=[Switch(), keeps], max_epochs=3, seed=1,
            data={"seed_samples": seed_samples}, run_dir=tmp_path / directory, **options,
        )  # fmt: skip
        trainer.train()
        return weights(trainer.run.model)

    whole = train("whole")
    for number in (3, 4, 6, 9):  # Before the switch, at it, after it, in a later pass.
        resumed = train(f"again_{number}", resume=tmp_path / f"whole/{iter_file(number)}")
        assert all(torch.equal(resumed[name], value) for name, value in whole.items())
