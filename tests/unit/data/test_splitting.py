"""Batches of every form are split along their samples."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from hookloop.errors import DataError
from hookloop.update.in_parts import split_batch

Pair = namedtuple("Pair", "x y")


@dataclass
class Sample:
    x: torch.Tensor
    name: str = "all"


def x(count=5):
    return torch.arange(count * 2).reshape(count, 2)


@pytest.mark.parametrize(
    ("batch", "get"),
    [
        (x(), lambda part: part),
        ((x(), x()), lambda part: part[1]),
        ([x(), {"y": x(), "scale": 2.0}], lambda part: part[1]["y"]),
        ({"x": x(), "one": torch.tensor(3)}, lambda part: part["x"]),
        (Pair(x(), x()), lambda part: part.y),
        (Sample(x()), lambda part: part.x),
        (([x(3), x(2), x(1), x(2), x(4)], [{"a": n} for n in range(5)]), None),
        ({"x": x().numpy(), "names": list("abcde")}, lambda part: torch.from_numpy(part["x"])),
    ],
)
@pytest.mark.parametrize("parts", [1, 2, 4, 64])
def test_the_parts_in_order_are_the_batch(batch, get, parts):
    found = split_batch(batch, parts)
    assert len(found) == min(parts, 5)
    assert all(type(part) is type(batch) for part in found)
    if get is None:
        assert [row["a"] for part in found for row in part[1]] == [0, 1, 2, 3, 4]
        assert [len(row) for part in found for row in part[0]] == [3, 2, 1, 2, 4]
    else:
        assert torch.equal(torch.cat([torch.as_tensor(get(part)) for part in found]), x())


def test_parts_differ_by_one_sample_at_most():
    assert [len(part) for part in split_batch(np.arange(10), 4)] == [3, 3, 2, 2]


class Graphs:
    num_graphs = 4


@pytest.mark.parametrize(
    "batch", [Graphs(), (x(), torch.zeros(3)), {"x": x(), "g": object()}, object()]
)
def test_what_is_not_understood_is_rejected(batch):
    with pytest.raises(DataError, match="cannot be split.*Make the batches smaller"):
        split_batch(batch, 2)
