"""Values in the two forms that a checkpoint can hold."""

import random
from collections import Counter, OrderedDict, defaultdict, deque
from enum import Enum, IntEnum
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from hookloop.objects.marks import mark_of
from hookloop.objects.values import (
    NO_STATE,
    is_equal,
    restore_state,
    restore_value,
    to_state,
    to_value,
)

CPU = torch.device("cpu")


class Color(Enum):
    RED = 1
    BLUE = 2


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
def test_a_value_is_saved_in_a_plain_form_and_comes_back_as_it_was(make, tmp_path):
    value = make()
    torch.save(to_state(value), tmp_path / "state.pth")
    state = torch.load(tmp_path / "state.pth", weights_only=True)
    back = restore_state(make(), state)
    assert type(back) is type(value) and is_equal(to_state(back), to_state(value))


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
    torch.save([to_state(one), to_value(one)], tmp_path / "state.pth")
    state, value = torch.load(tmp_path / "state.pth", weights_only=True)
    assert restore_state(other, state) is other
    new = restore_value(None, value, CPU)
    draws = [draw(one) for _ in range(3)]
    assert draws == [draw(other) for _ in range(3)] == [draw(new) for _ in range(3)]
    assert restore_value(other, value, CPU) is other


@pytest.mark.parametrize(
    "value",
    [object(), torch.nn.Linear(1, 1), [object()], {"a": {object()}}, Kind.ONE, [{(1, 2): 3}]],
)
def test_a_value_that_no_checkpoint_can_hold_has_no_state(value):
    assert to_state(value) is NO_STATE


@pytest.mark.parametrize("make", [lambda: [1, 2], lambda: {"a": 1}, lambda: np.arange(2)])
def test_other_references_to_the_object_see_what_was_restored(make):
    mine = theirs = make()
    state = to_state(mine)
    if isinstance(mine, dict):
        mine["a"] = 7
    else:
        mine[0] = 7
    assert restore_state(mine, state) is theirs
    assert is_equal(to_state(theirs), state)


def test_a_larger_value_replaces_the_old_one():
    assert restore_state(torch.zeros(2), torch.ones(3)).tolist() == [1, 1, 1]
    assert restore_state(np.zeros(2), torch.ones(3)).tolist() == [1, 1, 1]


def test_different_states_are_not_equal():
    assert is_equal([torch.tensor([1.0])], [torch.tensor([1.0])])
    assert is_equal(float("nan"), float("nan"))
    assert not is_equal([1], (1,))
    assert not is_equal([torch.tensor([1.0])], [torch.tensor([2.0])])
    assert not is_equal({"a": 1}, {"b": 1})


@pytest.mark.parametrize(
    "value",
    [
        1, 0.5, "text", None, b"x", {1, 2}, frozenset({1}), deque([1], maxlen=2), Counter("ab"),
        OrderedDict(b=1, a=2), defaultdict(list, {"a": [1]}), {(1, "a"): [deque([2])]},
        [{"a": (1, [2.0])}], {"#kind": "a key of the user's"}, Path("a/b"), np.float32(0.5),
    ],
)  # fmt: skip
def test_a_value_comes_back_without_the_old_one(value, tmp_path):
    torch.save(to_value(value), tmp_path / "state.pth")
    state = torch.load(tmp_path / "state.pth", weights_only=True)
    back = restore_value(None, state, CPU)
    assert (type(back), back) == (type(value), value)
    assert mark_of(back) == mark_of(value)
    if isinstance(value, deque):
        assert back.maxlen == value.maxlen


def test_an_array_comes_back_without_the_old_one_and_an_enum_with_it():
    array = np.arange(6).reshape(2, 3)
    assert (restore_value(None, to_value([array]), CPU)[0] == array).all()
    assert restore_value(Color.RED, to_value(Color.BLUE), CPU) is Color.BLUE


def test_what_is_restored_stays_the_same_object():
    for old, new in (([1], [2, 3]), ({"a": 1}, {"b": 2}), (deque([1]), deque([2]))):
        assert restore_value(old, to_value(new), CPU) is old
        assert old == new
    parameter = nn.Parameter(torch.zeros(2))
    assert restore_value(parameter, to_value(torch.ones(2)), CPU) is parameter


def test_a_value_that_is_too_large_is_not_saved():
    assert to_value([0] * 11, most=10) is NO_STATE
    assert to_value([torch.zeros(11)], most=10) is NO_STATE
