import random
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from hookloop.data.reading.exactness import find_generators
from hookloop.data.stream import Stream

RNG = np.random.default_rng(1)


class Plain(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(1)


class WithAttribute(Plain):
    def __init__(self):
        super().__init__()
        self.rng = random.Random()


class OfTheClass(Plain):
    rng = np.random.RandomState(1)


class OfTheModule(Plain):
    def __getitem__(self, index):
        return torch.tensor(RNG.random())


class Noise:
    def __init__(self):
        self.generator = torch.Generator()

    def add(self, value):
        return value


def in_a_closure():
    rng = random.Random()
    return lambda value: value + rng.random()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (WithAttribute(), "rng"),
        (OfTheClass(), "rng"),
        (OfTheModule(), "RNG"),
        (Plain(Noise()), "transform.generator"),
        (Plain([Noise()]), "transform.0.generator"),
        (Plain({"train": Noise().add}), "transform.train.__self__.generator"),
        (Plain(partial(Noise.add, Noise())), "transform.args.0.generator"),
        (Plain(in_a_closure()), "transform.rng"),
    ],
)
def test_a_generator_is_found_wherever_it_is(data, name):
    assert [found for found, _ in find_generators(data)] == [name]
    inexact = Stream(DataLoader(data, num_workers=1), "data").inexact
    assert f"its data set has a random generator of its own ('{name}')" in inexact


def test_one_of_collate_fn_is_found_too():
    rng = random.Random()

    def collate(samples):
        rng.shuffle(samples)
        return default_collate(samples)

    loader = DataLoader(Plain(), collate_fn=collate, num_workers=1)
    assert "its collate_fn has" in Stream(loader, "data").inexact


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"num_workers": 1}])
def test_data_without_one_is_exact(options):
    assert Stream(DataLoader(Plain(), **options), "data").inexact is None


def test_a_list_that_iterates_in_a_way_of_its_own_is_named():
    class Shuffled(list):
        def __iter__(self):
            return iter(random.sample(self[:], len(self)))

    class Named(list):
        pass

    assert "Shuffled has an __iter__ of its own" in Stream(Shuffled([1, 2]), "data").inexact
    assert Stream(Named([1, 2]), "data").inexact is None
    assert Stream(range(3), "data").inexact is None


def test_few_parts_of_deep_lists_are_looked_at_and_near_generators_found():
    class Looked(list):
        count = 0

        def __getitem__(self, index):
            Looked.count += 1
            return super().__getitem__(index)

    data = Plain()
    data.samples = [[[Looked([0] * 100)] * 100] * 100] * 100
    data.rng = random.Random(0)
    assert [name for name, _ in find_generators(data)] == ["rng"]
    assert Looked.count < 2_000
