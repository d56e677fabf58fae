from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch

from hookloop.errors import HookError
from hookloop.hooks import MixUp
from hookloop.hooks.data._batch_parts import part_of, with_part

OLD, NEW, OTHER = torch.zeros(2), torch.ones(2), torch.full((2,), 5.0)


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


@dataclass
class Record:
    a: torch.Tensor
    b: torch.Tensor


@pytest.mark.parametrize(
    ("batch", "key"),
    [
        ((OLD, OTHER), 0),
        ([OLD, OTHER], 0),
        ({"a": OLD, "b": OTHER}, "a"),
        (Pair(OLD, OTHER), 0),
        (Pair(OLD, OTHER), "a"),
        (Record(OLD, OTHER), "a"),
    ],
)
def test_a_part_is_replaced_in_a_copy_of_the_same_kind(batch, key):
    made = with_part(batch, key, NEW)
    assert type(made) is type(batch)
    assert part_of(MixUp(), made, key) is NEW and part_of(MixUp(), batch, key) is OLD
    other = "b" if isinstance(key, str) else 1
    assert part_of(MixUp(), made, other) is OTHER


@pytest.mark.parametrize(("batch", "key"), [((OLD,), 1), ({"a": 1}, "a"), (OLD, "image")])
def test_what_is_not_there_is_reported(batch, key):
    with pytest.raises(HookError, match=rf"MixUp: there is no tensor at {key!r} of the batch"):
        part_of(MixUp(), batch, key)
