"""The first batches of data: the same in every process, and without a trace in the generators."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from hookloop.data.reading.first_batches import first_batches
from hookloop.errors import DataError


class Noisy(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor([index, torch.rand(()), random.random(), np.random.rand()])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_a_loader_is_read_in_the_order_of_its_data_set():
    loader = DataLoader(TensorDataset(torch.arange(10)), batch_size=3, shuffle=True, num_workers=2)
    assert [batch[0].tolist() for batch in first_batches(loader, 2)] == [[0, 1, 2], [3, 4, 5]]


def test_the_order_of_anything_else_is_its_own():
    assert first_batches((number for number in range(5)), 2) == [0, 1]
    assert [x.tolist() for x in first_batches(DataLoader(Stream(), batch_size=2), 2)] == [
        [0, 1], [2, 3],
    ]  # fmt: skip
    groups = DataLoader(TensorDataset(torch.arange(6)), batch_sampler=[[5, 1], [2, 0]])
    assert [batch[0].tolist() for batch in first_batches(groups, 1)] == [[5, 1]]


def test_samples_without_batches_are_read_one_by_one():
    loader = DataLoader(TensorDataset(torch.arange(6)), batch_size=None, shuffle=True)
    assert [int(batch[0]) for batch in first_batches(loader, 2)] == [0, 1]


def test_random_samples_are_the_same_again_and_leave_no_trace():
    generator = torch.Generator().manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, generator=generator)
    before = generator.get_state(), torch.get_rng_state(), random.getstate()
    first = first_batches(loader, 2)
    assert torch.equal(generator.get_state(), before[0])
    assert torch.equal(torch.get_rng_state(), before[1])
    assert random.getstate() == before[2]
    torch.manual_seed(77)
    assert all(map(torch.equal, first, first_batches(loader, 2)))


def test_empty_data_is_rejected():
    with pytest.raises(DataError, match="train_data is empty"):
        first_batches([], 2)
