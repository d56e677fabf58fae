"""Chains of transforms."""

import pytest

from hookloop_mmengine.dataset import Compose
from hookloop_mmengine.registry import TRANSFORMS


class ToyAdd:
    def __init__(self, number):
        self.number = number

    def __call__(self, data):
        return data + self.number


@pytest.fixture(autouse=True)
def registered():
    TRANSFORMS.register_module(module=ToyAdd)
    yield
    del TRANSFORMS.module_dict["ToyAdd"]


def test_transforms_run_in_their_order():
    chain = Compose([{"type": "ToyAdd", "number": 1}, lambda data: data * 10, ToyAdd(2)])
    assert chain(1) == 22


def test_none_drops_the_sample_and_ends_the_chain():
    seen = []
    chain = Compose([lambda data: data if data else None, seen.append])
    assert chain(0) is None
    assert seen == []


@pytest.mark.parametrize("transforms", [None, []])
def test_no_transforms_change_nothing(transforms):
    assert Compose(transforms)(5) == 5


def test_a_transform_is_callable():
    with pytest.raises(TypeError, match="transform should be a callable object, but got 3"):
        Compose([3])


def test_a_chain_is_shown():
    assert repr(Compose([len])) == "Compose(\n    <built-in function len>\n)"
