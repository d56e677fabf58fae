import random

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from hookloop.data.seeding import Sample, SeededSamples, key_of


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
    first = [data[Sample(3, 11, 0, place)] for place in (0, 1)]
    assert first[0][1:] != first[1][1:]
    torch.rand(5)
    assert [data[Sample(3, 11, 0, place)] for place in (1, 0)] == first[::-1]


def test_other_passes_draw_other_numbers():
    data = SeededSamples(Draw())
    assert data[Sample(3, 11, 0, 0)][1:] != data[Sample(3, 12, 0, 0)][1:]
    state = torch.get_rng_state()
    assert key_of([state], 1) != key_of([state], 2)
    assert key_of([state], 1) == key_of([state.clone()], 1)


def test_a_data_set_that_loads_several_at_once_is_seeded_once():
    assert not hasattr(SeededSamples(Draw()), "__getitems__")
    data = SeededSamples(Many())
    samples = [Sample(index, 11, 4, place) for place, index in enumerate((5, 2))]
    assert data.__getitems__(samples) == data.__getitems__(samples)


def test_whoever_asks_for_the_data_set_gets_the_users_own():
    inner = Draw()
    data = SeededSamples(inner)
    assert (data.label, len(data)) == ("mine", 7)
    data.label = "set by a worker_init_fn"
    assert inner.label == "set by a worker_init_fn"
    assert get_worker_info() is None
