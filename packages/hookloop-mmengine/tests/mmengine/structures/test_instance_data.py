"""Instances of one image: fields of one length, indexed together."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.structures import InstanceData


def make():
    return InstanceData(
        metainfo={"size": (4, 4)},
        labels=torch.tensor([1, 2, 3]),
        scores=np.array([0.1, 0.2, 0.3]),
        names=["x", "y", "z"],
        pairs=("p", "q", "r"),
        word="abc",
    )


def fields(data):
    return (data.labels.tolist(), data.scores.tolist(), data.names, data.pairs, data.word)


@pytest.mark.parametrize(
    "item",
    [
        slice(1, None),
        [1, 2],
        [False, True, True],
        np.array([1, 2]),
        np.array([False, True, True]),
        torch.tensor([1, 2]),
        torch.tensor([False, True, True]),
    ],
    ids=str,
)
def test_every_field_takes_every_kind_of_index(item):
    chosen = make()[item]
    assert fields(chosen) == ([2, 3], [0.2, 0.3], ["y", "z"], ("q", "r"), "bc")
    assert chosen.metainfo == {"size": (4, 4)}
    assert len(chosen) == 2


def test_an_order_of_indices_is_kept():
    assert fields(make()[[2, 0]]) == ([3, 1], [0.3, 0.1], ["z", "x"], ("r", "p"), "ca")


def test_nothing_may_be_chosen():
    assert len(make()[torch.zeros(3, dtype=torch.bool)]) == 0
    assert make()[slice(0, 0)].names == []


@pytest.mark.parametrize(("index", "label"), [(0, 1), (2, 3), (-1, 3), (-3, 1)])
def test_one_index_keeps_the_dimension(index, label):
    assert make()[index].labels.tolist() == [label]


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_out_of_range_is_an_error(index):
    with pytest.raises(IndexError, match=f"Index {index} out of range"):
        make()[index]


def test_a_name_returns_the_field():
    assert make()["names"] == ["x", "y", "z"]


def test_fields_must_have_one_length():
    data = make()
    with pytest.raises(AssertionError, match="length of masks is 1, but the other fields have 3"):
        data.masks = [1]
    with pytest.raises(AssertionError, match="masks needs one entry per instance, not 5"):
        data.masks = 5
    assert len(data) == 3


def test_the_only_field_may_change_its_length():
    data = InstanceData(labels=[1, 2])
    data.labels = [1]
    assert len(data) == 1
    assert len(InstanceData()) == 0


def test_instances_are_joined_field_by_field():
    data = make()
    whole = InstanceData.cat([data[:1], data, data[2:]])
    assert whole.labels.tolist() == [1, 1, 2, 3, 3]
    assert whole.scores.tolist() == [0.1, 0.1, 0.2, 0.3, 0.3]
    assert whole.names == ["x", "x", "y", "z", "z"]
    assert whole.pairs == ("p", "p", "q", "r", "r")
    assert whole.word == "aabcc"


def test_instances_with_other_fields_are_not_joined():
    with pytest.raises(AssertionError, match="different keys"):
        InstanceData.cat([InstanceData(a=[1]), InstanceData(b=[1])])
    with pytest.raises(AssertionError, match="different keys"):
        InstanceData.cat([InstanceData(a=[1]), InstanceData(a=[1], b=[1])])
