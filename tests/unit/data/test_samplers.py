import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Sampler

from hookloop.data.randomness import seed_all
from hookloop.data.source import Source

COUNT = 12


class Lazy(Sampler):
    """Draws as it goes, and keeps something of what it drew before."""

    def __len__(self):
        return COUNT

    def __iter__(self):
        kept = 0
        for _ in range(COUNT):
            drawn = random.randrange(5) + np.random.randint(5) + int(torch.randint(5, ()))
            kept = (kept + drawn) % COUNT
            yield kept


class Counting(Sampler):
    """Shuffles by a number of its own."""

    def __init__(self):
        self.passes = 0

    def __len__(self):
        return COUNT

    def __iter__(self):
        self.passes += 1
        generator = torch.Generator().manual_seed(self.passes)
        yield from torch.randperm(COUNT, generator=generator).tolist()


class Shuffling(Sampler):
    """Keeps more than numbers, and says so itself."""

    def __init__(self):
        self.order = list(range(COUNT))

    def __len__(self):
        return COUNT

    def __iter__(self):
        random.shuffle(self.order)
        yield from self.order

    def state_dict(self):
        return {"order": list(self.order)}

    def load_state_dict(self, state):
        self.order = list(state["order"])


def source(sampler, workers):
    data = torch.arange(COUNT)
    return Source(DataLoader(data, batch_size=2, sampler=sampler(), num_workers=workers), "data")


def read(one, batches):
    """Read on, as a model would that draws random numbers in each iteration."""
    taken = []
    while len(taken) < batches:
        for (batch,) in one.groups(1):
            torch.rand(3), random.random(), np.random.rand()
            taken.append(batch.tolist())
            if len(taken) == batches:
                break
    return taken


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sampler", [Lazy, Counting, Shuffling])
@pytest.mark.parametrize("place", [3, 6, 10])
def test_a_sampler_of_ones_own_goes_on_where_it_was(sampler, workers, place):
    seed_all(1)
    whole = read(source(sampler, workers), 18)

    seed_all(1)
    first = source(sampler, workers)
    begun = read(first, place)
    if place % 6 == 0:
        first.finish()
    generators = random.getstate(), np.random.get_state(), torch.get_rng_state()
    state = first.state_dict()

    seed_all(2)
    second = source(sampler, workers)
    second.load_state_dict(state)
    random.setstate(generators[0])
    np.random.set_state(generators[1])
    torch.set_rng_state(generators[2])
    assert begun + read(second, 18 - place) == whole


def test_what_a_sampler_draws_later_does_not_move_the_generators():
    one = source(Lazy, 0)
    seed_all(1)
    batches = one.groups(1)
    next(batches)
    before = torch.get_rng_state()
    next(batches)
    assert torch.equal(torch.get_rng_state(), before)
