import random

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, get_worker_info

from hookloop.data.random.per_sample import SampleGroup, SeededInProcess, SeededSamples, derive_key
from hookloop.data.random.states import seed_all


class Draw(Dataset):
    label = "mine"

    def __getitem__(self, index):
        return index, torch.rand(1).item(), np.random.rand(), random.random()

    def __len__(self):
        return 7


class Many(Draw):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def test_a_sample_draws_the_same_numbers_wherever_it_is_loaded():
    data = SeededSamples(Draw())
    first = data.__getitems__(SampleGroup([3, 3], 11, 0))
    assert first[0][1:] != first[1][1:]
    torch.rand(5)
    assert data.__getitems__(SampleGroup([3, 3], 11, 0)) == first
    assert data[SampleGroup([3], 11, 0)] == first[0]


def test_other_passes_draw_other_numbers():
    data = SeededSamples(Draw())
    assert data[SampleGroup([3], 11, 0)][1:] != data[SampleGroup([3], 12, 0)][1:]
    state = torch.get_rng_state()
    assert derive_key([state], 1) != derive_key([state], 2)
    assert derive_key([state], 1) == derive_key([state.clone()], 1)


def test_a_data_set_that_loads_several_at_once_is_seeded_once():
    data = SeededSamples(Many())
    group = SampleGroup([5, 2], 11, 4)
    assert data.__getitems__(group) == data.__getitems__(group)
    assert data.__getitems__(group) != SeededSamples(Draw()).__getitems__(group)


def test_attributes_are_those_of_the_users_data_set():
    inner = Draw()
    data = SeededSamples(inner)
    assert (data.label, len(data)) == ("mine", 7)
    data.label = "set by a worker_init_fn"
    assert inner.label == "set by a worker_init_fn"
    assert get_worker_info() is None


def test_a_part_of_a_batch_draws_what_it_draws_in_the_whole():
    data = SeededSamples(Draw())
    whole = data.__getitems__(SampleGroup([3, 1, 6, 2], 11, 5))
    assert data.__getitems__(([6, 2], 11, 5, 2)) == whole[2:]
    assert data.__getitems__(([3], 11, 5, 0)) == whole[:1]


def test_in_the_process_itself_the_generators_are_set_back():
    data = SeededInProcess(Draw())
    seed_all(4)
    expected = torch.rand(1).item(), np.random.randn(), random.gauss(0, 1)
    seed_all(4)
    group = data.__getitems__(([3, 1], 11, 5, 0))
    assert data[([3], 11, 5)] == group[0]
    assert group == SeededSamples(Draw()).__getitems__(([3, 1], 11, 5, 0))
    seed_all(4)
    data.__getitems__(([3, 1], 11, 5, 0))
    assert (torch.rand(1).item(), np.random.randn(), random.gauss(0, 1)) == expected


def test_the_generators_are_set_back_after_a_failure_too():
    class Broken(Draw):
        def __getitem__(self, index):
            torch.rand(3)
            raise ValueError("broken sample")

    seed_all(4)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="broken sample"):
        SeededInProcess(Broken()).__getitems__(([3], 11, 5, 0))
    assert torch.equal(torch.get_rng_state(), before)
