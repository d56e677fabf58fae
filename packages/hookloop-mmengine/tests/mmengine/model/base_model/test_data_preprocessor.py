"""From a batch of a loader to the input of a model."""

from collections import namedtuple

import pytest
import torch

from hookloop_mmengine.model import BaseDataPreprocessor, ImgDataPreprocessor
from hookloop_mmengine.structures import BaseDataElement

Pair = namedtuple("Pair", "a b")


def test_nested_data_is_moved_to_the_device_of_the_model():
    model = torch.nn.Module()
    model.prepare = BaseDataPreprocessor()
    model.to("meta")
    data = {
        "inputs": [torch.ones(1)],
        "pair": Pair(torch.ones(1), "text"),
        "nothing": None,
        "bytes": b"x",
        "number": 3,
        "sample": BaseDataElement(score=torch.ones(1)),
    }
    moved = model.prepare(data)
    assert model.prepare.device.type == "meta"
    assert moved["inputs"][0].device.type == "meta"
    assert isinstance(moved["pair"], Pair)
    assert moved["pair"].a.device.type == "meta"
    assert (moved["pair"].b, moved["nothing"], moved["bytes"], moved["number"]) == (
        "text", None, b"x", 3,
    )  # fmt: skip
    assert moved["sample"].score.device.type == "meta"
    assert data["inputs"][0].device.type == "cpu"


def test_a_change_of_type_keeps_the_device():
    prepare = BaseDataPreprocessor().half()
    assert prepare.device.type == "cpu"
    assert prepare(torch.ones(1)).dtype == torch.float32


def prepared(images, **options):
    return ImgDataPreprocessor(**options)({"inputs": images})["inputs"]


def test_images_are_padded_to_one_size_and_stacked():
    images = [torch.ones(3, 2, 3), torch.ones(3, 4, 1)]
    batch = prepared(images, pad_value=7)
    assert batch.shape == (2, 3, 4, 3)
    assert batch[0, 0].tolist() == [[1, 1, 1], [1, 1, 1], [7, 7, 7], [7, 7, 7]]
    assert batch[1, 0, 0].tolist() == [1, 7, 7]
    assert prepared(images, pad_size_divisor=8).shape == (2, 3, 8, 8)


def test_images_are_normalized_before_the_padding():
    image = torch.full((3, 1, 1), 10, dtype=torch.uint8)
    batch = prepared([image], mean=[4, 6, 8], std=[2, 2, 1], pad_size_divisor=2)
    assert batch[0, :, 0, 0].tolist() == [3, 2, 2]
    assert batch[0, :, 1, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("option", ["bgr_to_rgb", "rgb_to_bgr"])
def test_channels_are_reversed_before_they_are_normalized(option):
    image = torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    assert prepared([image], **{option: True}).flatten().tolist() == [3, 2, 1]
    batch = prepared([image], mean=[1, 1, 1], std=[1, 2, 1], **{option: True})
    assert batch.flatten().tolist() == [2, 0.5, 0]


def test_a_stacked_batch_may_be_given():
    assert prepared(torch.ones(2, 1, 3, 3)).shape == (2, 1, 3, 3)


def test_samples_are_always_there():
    prepare = ImgDataPreprocessor()
    assert prepare({"inputs": [torch.ones(1, 1, 1)]})["data_samples"] is None
    assert prepare({"inputs": [torch.ones(1, 1, 1)], "data_samples": [1]})["data_samples"] == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bgr_to_rgb": True, "rgb_to_bgr": True}, "at the same time"),
        ({"mean": [1]}, "both None or both given"),
    ],
)
def test_wrong_arguments_are_rejected(options, message):
    with pytest.raises(AssertionError, match=message):
        ImgDataPreprocessor(**options)


def test_mean_and_std_are_not_saved():
    assert dict(ImgDataPreprocessor(mean=[1], std=[1]).state_dict()) == {}
