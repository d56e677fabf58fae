"""From a batch of a loader to the input of a model."""

from collections import namedtuple

import torch

from hookloop_mmengine.model import BaseDataPreprocessor
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
