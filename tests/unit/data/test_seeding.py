import random

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from hookloop.data.seeding import Group, SeededSamples, key_of


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
    first = data.__getitems__(Group([3, 3], 11, 0))
    assert first[0][1:] != first[1][1:]
    torch.rand(5)
    assert data.__getitems__(Group([3, 3], 11, 0)) == first
    assert data[Group([3], 11, 0)] == first[0]


def test_other_passes_draw_other_numbers():
    data = SeededSamples(Draw())
    assert data[Group([3], 11, 0)][1:] != data[Group([3], 12, 0)][1:]
    state = torch.get_rng_state()
    assert key_of([state], 1) != key_of([state], 2)
    assert key_of([state], 1) == key_of([state.clone()], 1)


def test_a_data_set_that_loads_several_at_once_is_seeded_once():
    data = SeededSamples(Many())
    group = Group([5, 2], 11, 4)
    assert data.__getitems__(group) == data.__getitems__(group)
    assert data.__getitems__(group) != SeededSamples(Draw()).__getitems__(group)


def test_whoever_asks_for_the_data_set_gets_the_users_own():
    inner = Draw()
    data = SeededSamples(inner)
    assert (data.label, len(data)) == ("mine", 7)
    data.label = "set by a worker_init_fn"
    assert inner.label == "set by a worker_init_fn"
    assert get_worker_info() is None
