import random
from collections import deque
from enum import IntEnum

import numpy as np
import pytest
import torch

from hookloop.data.kept import NOTHING, give_back, is_same, keep


class Kind(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: 3,
        lambda: None,
        lambda: np.float32(0.5),
        lambda: [1, "a", (2.5, {"x": [True]})],
        lambda: {"a": torch.arange(3), 4: None},
        lambda: {1, 2},
        lambda: frozenset({1}),
        lambda: deque([1, 2], maxlen=2),
        lambda: np.arange(6).reshape(2, 3),
        lambda: torch.ones(2, dtype=torch.bfloat16),
    ],
)
def test_a_value_is_kept_as_a_file_can_hold_it_and_comes_back_as_it_was(make, tmp_path):
    value = make()
    torch.save(keep(value), tmp_path / "kept.pth")
    kept = torch.load(tmp_path / "kept.pth", weights_only=True)
    back = give_back(make(), kept)
    assert type(back) is type(value) and is_same(keep(back), keep(value))


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: random.Random(1), lambda one: one.gauss(0, 1)),
        (lambda: np.random.default_rng(1), lambda one: one.normal()),
        (lambda: np.random.RandomState(1), lambda one: one.randn()),
        (lambda: torch.Generator().manual_seed(1), lambda one: torch.randn(3, generator=one).sum()),
    ],
)
def test_a_generator_continues(make, draw, tmp_path):
    one, other = make(), make()
    draw(one)
    torch.save(keep(one), tmp_path / "kept.pth")
    back = give_back(other, torch.load(tmp_path / "kept.pth", weights_only=True))
    assert back is other
    assert [draw(other) for _ in range(3)] == [draw(one) for _ in range(3)]


@pytest.mark.parametrize(
    "value",
    [object(), torch.nn.Linear(1, 1), [object()], {"a": {object()}}, Kind.ONE, [{(1, 2): 3}]],
)
def test_what_no_file_can_hold_is_left_alone(value):
    assert keep(value) is NOTHING


@pytest.mark.parametrize("make", [lambda: [1, 2], lambda: {"a": 1}, lambda: np.arange(2)])
def test_whoever_holds_the_same_object_sees_what_came_back(make):
    mine = theirs = make()
    kept = keep(mine)
    if isinstance(mine, dict):
        mine["a"] = 7
    else:
        mine[0] = 7
    assert give_back(mine, kept) is theirs
    assert is_same(keep(theirs), kept)


def test_a_larger_value_replaces_the_old_one():
    assert give_back(torch.zeros(2), torch.ones(3)).tolist() == [1, 1, 1]
    assert give_back(np.zeros(2), torch.ones(3)).tolist() == [1, 1, 1]


def test_what_differs_is_told_apart():
    assert is_same([torch.tensor([1.0])], [torch.tensor([1.0])])
    assert is_same(float("nan"), float("nan"))
    assert not is_same([1], (1,))
    assert not is_same([torch.tensor([1.0])], [torch.tensor([2.0])])
    assert not is_same({"a": 1}, {"b": 1})
