"""Datasets made of other datasets."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.dataset import (
    BaseDataset,
    ClassBalancedDataset,
    ConcatDataset,
    RepeatDataset,
)
from hookloop_mmengine.registry import DATASETS


class Numbers(torch.utils.data.Dataset):
    def __init__(self, *values, **metainfo):
        self.values, self.metainfo = values, metainfo

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


class Listed(BaseDataset):
    loaded = 0

    def __init__(self, *classes, **options):
        self.classes = classes
        super().__init__(**options)

    def load_data_list(self):
        self.loaded += 1
        return [{"classes": list(one)} for one in self.classes]

    def get_cat_ids(self, idx):
        return self.get_data_info(idx)["classes"]


@pytest.fixture(autouse=True)
def registered():
    DATASETS.register_module(name="ToyNumbers", module=Numbers)
    yield
    del DATASETS.module_dict["ToyNumbers"]


def test_datasets_are_read_one_after_the_other():
    both = ConcatDataset([Numbers(1, 2), {"type": "ToyNumbers"}, Numbers(3)])
    assert [both[index] for index in range(len(both))] == [1, 2, 3]
    assert both[-1] == 3
    assert both.metainfo == {}
    with pytest.raises(ValueError, match=r"index\(-4\) should not exceed dataset length\(3\)"):
        _ = both[-4]


def test_meta_information_is_the_same_in_all():
    same = [Numbers(1, names=np.array([1, 2])), Numbers(2, names=np.array([1, 2]))]
    assert ConcatDataset(same).metainfo["names"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="2-th dataset does not match.*names"):
        ConcatDataset([Numbers(names=("a",)), Numbers(names=("b",))])
    with pytest.raises(ValueError, match="names is not in the meta information of the 2-th"):
        ConcatDataset([Numbers(names=("a",)), Numbers()])
    with pytest.raises(TypeError, match="The type <class 'list'> of names in the 2-th dataset"):
        ConcatDataset([Numbers(names=("a",)), Numbers(names=["a"])])
    assert ConcatDataset([Numbers(1, a=1), Numbers(2, a=2)], ignore_keys="a").metainfo == {"a": 1}
    with pytest.raises(TypeError, match="ignore_keys should be a list or str"):
        ConcatDataset([Numbers()], ignore_keys=3)


def test_annotations_are_read_at_the_first_use():
    parts = [Listed((0,), (1,), lazy_init=True), Listed((2,), lazy_init=True)]
    both = ConcatDataset(parts, lazy_init=True)
    assert [part.loaded for part in parts] == [0, 0]
    assert len(both) == 3
    assert both.get_data_info(2) == {"classes": [2], "sample_idx": 0}
    assert both[1]["classes"] == [1]
    assert [part.loaded for part in parts] == [1, 1]


def test_a_dataset_is_repeated():
    repeated = RepeatDataset(Numbers(1, 2, classes=("a",)), times=3)
    assert len(repeated) == 6
    assert [repeated[index] for index in range(6)] == [1, 2, 1, 2, 1, 2]
    assert repeated.metainfo == {"classes": ("a",)}
    lazy = RepeatDataset(Listed((0,), lazy_init=True), 2, lazy_init=True)
    assert lazy.get_data_info(1)["sample_idx"] == 0


def test_samples_of_rare_classes_are_repeated():
    dataset = Listed((0,), (0,), (0, 1), ())
    balanced = ClassBalancedDataset(dataset, oversample_thr=1.0)
    # Class 1 is in a quarter of the samples: the root of 1 / 0.25 is 2.
    assert balanced.repeat_indices == [0, 0, 1, 1, 2, 2, 3]
    assert len(balanced) == 7
    assert balanced.get_cat_ids(5) == [0, 1]
    assert balanced[5]["sample_idx"] == 2
    assert len(ClassBalancedDataset(dataset, oversample_thr=0.1)) == 4


@pytest.mark.parametrize(
    "wrapper",
    [
        RepeatDataset(Numbers(1), 2),
        ConcatDataset([Numbers(1)]),
        ClassBalancedDataset(Listed((0,)), 0.5),
    ],
)
def test_a_part_is_taken_of_the_dataset_inside(wrapper):
    for method in (wrapper.get_subset, wrapper.get_subset_):
        with pytest.raises(NotImplementedError, match="Call them of the dataset inside"):
            method(1)
