import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop.data.reading.exactness import reason_inexact, why_loader_inexact

DATA = TensorDataset(torch.arange(6))


class Shuffled(list):
    def __iter__(self):
        return iter(sorted(self))


class OfItsOwn(TensorDataset):
    def __init__(self):
        super().__init__(torch.arange(6))
        self.rng = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([1, 2], None),
        ((1, 2), None),
        (iter([1]), "read only once"),
        ({1, 2}, "not a DataLoader"),
        (Shuffled([1]), "an __iter__ of its own"),
    ],
)
def test_data_that_is_read_from_its_start(data, reason):
    found = reason_inexact(data)
    assert found is None if reason is None else reason in found


@pytest.mark.parametrize(
    ("options", "seed_samples", "in_order", "reason"),
    [
        ({}, False, True, None),
        ({"num_workers": 1}, True, True, None),
        ({"num_workers": 1}, "workers", True, None),
        ({"num_workers": 1}, False, True, "seed_samples=False"),
        ({"num_workers": 1}, True, False, "in_order=False"),
        ({"num_workers": 0}, True, False, None),
    ],
)
def test_a_loader(options, seed_samples, in_order, reason):
    found = why_loader_inexact(DataLoader(DATA, **options), [], seed_samples, in_order=in_order)
    assert found is None if reason is None else reason in found


def test_a_generator_is_exact_if_it_is_saved():
    data = OfItsOwn()
    loader = DataLoader(data, num_workers=1)
    assert "'rng'" in why_loader_inexact(loader, [], True, in_order=True)
    assert why_loader_inexact(loader, [data.rng], True, in_order=True) is None


def test_a_generator_in_this_process_is_saved_with_the_run():
    assert why_loader_inexact(DataLoader(OfItsOwn()), [], True, in_order=True) is None
