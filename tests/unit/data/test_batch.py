from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hookloop.data.batch import inputs_in, pair_of, size_of

IMAGES = [torch.zeros(3, 8, 8), torch.zeros(3, 9, 9)]


@dataclass
class Pair:
    name: str
    inputs: torch.Tensor


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (torch.zeros(5, 2), 5),
        ((torch.zeros(5, 2), torch.zeros(5)), 5),
        ([[torch.zeros(5, 2), torch.zeros(5, 3)], torch.zeros(5)], 5),
        ([torch.zeros(5, 2), torch.zeros(5, 3)], 5),
        ({"text": ["a", "b"], "ids": torch.zeros(2, 7)}, 2),
        ({"text": ["a", "b", "c"]}, 3),
        ({"inner": {"x": torch.zeros(6, 1)}}, 6),
        ((np.zeros((4, 2)), np.zeros(4)), 4),
        ((IMAGES, [{"boxes": torch.zeros(9, 4)}, {"boxes": torch.zeros(1, 4)}]), 2),
        ([{"image": image} for image in IMAGES], 2),
        (["a", "b", "c", "d"], 4),
        (Pair("x", torch.zeros(7, 1)), 7),
        ((torch.tensor(1.0), torch.zeros(8, 1)), 8),
        (({"x": torch.zeros(5, 2)}, torch.zeros(5)), 5),
        ([{"x": torch.zeros(5, 2), "mask": torch.zeros(5)}, {"y": torch.zeros(5)}], 5),
        (("photos", torch.zeros(5, 2)), 5),
        ((3, torch.zeros(5, 2)), 5),
        ([(torch.zeros(8), 1), (torch.zeros(8), 0), (torch.zeros(8), 1)], 3),
        ([(image, torch.zeros(4)) for image in IMAGES], 2),
        (((torch.zeros(5, 7), torch.zeros(5)), (torch.zeros(5, 6), torch.zeros(5))), 5),
        (((torch.zeros(5, 7), [7] * 5), (torch.zeros(5, 6), [6] * 5)), 5),
        ((IMAGES, [torch.zeros(9, 4), torch.zeros(1, 4)]), 2),
        (SimpleNamespace(name="x", inputs=torch.zeros(6, 2)), 6),
        (SimpleNamespace(num_graphs=4, x=torch.zeros(90, 2)), 4),
        (SimpleNamespace(batch_size=4, x=torch.zeros(90, 2)), 4),
        (deque(IMAGES), 2),
        ((torch.zeros(0, 2), torch.zeros(0)), 0),
        (torch.tensor(1.0), 1),
        ("text", 1),
        ({}, 1),
        (None, 1),
        (object(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_are_counted_in_every_kind_of_batch(batch, size):
    assert size_of(batch) == size


def test_inputs_and_targets_are_found_in_pairs_and_mappings():
    assert (
        pair_of((1, 2)) == pair_of([1, 2]) == pair_of({"input": 1, "target": 2, "id": 3}) == (1, 2)
    )
    for batch in ((1, 2, 3), {"input": 1}, torch.zeros(2), None):
        assert pair_of(batch) is None
        assert inputs_in(batch, has_loss=True) is batch
    mapping = {"input": 1, "target": 2}
    assert inputs_in(mapping, has_loss=True) == inputs_in([1, 2], has_loss=False) == 1
    assert inputs_in(mapping, has_loss=False) is mapping  # A step gets the whole mapping.


def test_an_object_that_leads_to_itself_is_one_sample():
    node = SimpleNamespace()
    node.parent = SimpleNamespace(child=node)
    assert size_of(node) == 1
