"""Chains of transforms, and datasets made of other datasets."""

import pytest
import torch

from hookloop.dialects.mmengine.dataset import Compose, ConcatDataset, RepeatDataset
from hookloop.dialects.mmengine.registry import DATASETS, TRANSFORMS


class Numbers(torch.utils.data.Dataset):
    def __init__(self, *values, classes=()):
        self.values = values
        self.metainfo = {"classes": classes}

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


class ToyAdd:
    def __init__(self, number):
        self.number = number

    def __call__(self, data):
        return data + self.number


@pytest.fixture(autouse=True)
def registered():
    DATASETS.register_module(name="ToyNumbers", module=Numbers)
    TRANSFORMS.register_module(module=ToyAdd)
    yield
    del DATASETS.module_dict["ToyNumbers"], TRANSFORMS.module_dict["ToyAdd"]


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


def test_datasets_are_read_one_after_the_other():
    both = ConcatDataset([Numbers(1, 2, classes=("a",)), {"type": "ToyNumbers"}, Numbers(3)])
    assert [both[index] for index in range(len(both))] == [1, 2, 3]
    assert both[-1] == 3
    assert both.metainfo == {"classes": ("a",)}


def test_a_dataset_is_repeated():
    repeated = RepeatDataset(Numbers(1, 2, classes=("a",)), times=3)
    assert len(repeated) == 6
    assert [repeated[index] for index in range(6)] == [1, 2, 1, 2, 1, 2]
    assert repeated.metainfo == {"classes": ("a",)}


def test_a_dataset_without_meta_information_has_none():
    class Bare(torch.utils.data.Dataset):
        def __len__(self):
            return 1

    assert RepeatDataset(Bare(), 1).metainfo == {}
    assert ConcatDataset([Bare()]).metainfo == {}
