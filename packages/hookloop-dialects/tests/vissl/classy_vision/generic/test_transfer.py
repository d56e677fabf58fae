"""Batches: where they are and how large they are."""

import pytest
import torch

from hookloop_dialects.vissl.classy_vision.generic import transfer


def test_everything_that_can_move_moves():
    batch = {"input": [torch.ones(2), (torch.ones(2), "text")], "id": 3}
    moved = transfer.recursive_copy_to_device(batch, True, torch.device("meta"))
    assert moved["id"] == 3 and moved["input"][1][1] == "text"
    assert moved["input"][0].device.type == moved["input"][1][0].device.type == "meta"
    assert type(moved["input"][1]) is tuple


@pytest.mark.parametrize("batch", [torch.ones(3, 2), [(torch.ones(3),)], {"a": [torch.ones(3)]}])
def test_the_first_tensor_tells_the_samples(batch):
    assert transfer.get_batchsize_per_replica(batch) == 3


def test_an_empty_batch_has_no_size():
    with pytest.raises(AssertionError, match="empty"):
        transfer.get_batchsize_per_replica([])


def test_an_input_of_zeros_has_the_form_that_the_model_takes():
    model = torch.nn.Linear(2, 1)
    make = transfer.get_model_dummy_input
    assert make(model, (3, 4), None, batchsize=2).shape == (2, 3, 4)
    assert make(model, (3,), "video")["video"].shape == (1, 3)
    assert make(model, [(3,), (4,)], ["a", "b"])["b"].shape == (1, 4)
    assert make(model, {"a": {"b": (5,)}}, None)["a"]["b"].shape == (1, 5)
