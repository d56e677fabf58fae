"""The devices of data."""

import pytest
import torch

from hookloop_mmengine import dist

CPU, META = torch.device("cpu"), torch.device("meta")


def test_nested_data_is_on_one_device():
    assert dist.get_data_device({"a": [torch.ones(1)], "b": (torch.ones(1),)}) == CPU
    assert dist.get_comm_device() == CPU
    with pytest.raises(ValueError, match="consistent, but got cpu and meta"):
        dist.get_data_device([torch.ones(1), torch.ones(1, device="meta")])
    for empty in ([], {}):
        with pytest.raises(ValueError, match="should not be empty"):
            dist.get_data_device(empty)
    for wrong in ("text", 3):
        with pytest.raises(TypeError, match="should be a Tensor, sequence of tensor or dict"):
            dist.get_data_device(wrong)


def test_data_is_moved_in_its_form():
    data = {"a": [torch.ones(2)], "b": (torch.zeros(1),)}
    moved = dist.cast_data_device(data, META)
    assert type(moved["b"]) is tuple
    assert dist.get_data_device(moved) == META
    out = {"a": [torch.zeros(2)], "b": (torch.ones(1),)}
    dist.cast_data_device(data, CPU, out)
    assert out["a"][0].tolist() == [1, 1]
    assert out["b"][0].tolist() == [0]


@pytest.mark.parametrize(
    ("data", "out", "error"),
    [
        ([torch.ones(1)], (torch.ones(1),), TypeError),
        ({torch.ones(1)}, {torch.ones(1)}, TypeError),
        ([torch.ones(1)], [], ValueError),
        ([], None, ValueError),
        ("text", None, TypeError),
    ],
)
def test_what_does_not_fit_is_rejected(data, out, error):
    with pytest.raises(error):
        dist.cast_data_device(data, CPU, out)
