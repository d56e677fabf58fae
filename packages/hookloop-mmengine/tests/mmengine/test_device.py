"""The devices of this machine."""

import pytest
import torch

from hookloop_mmengine import device


def test_the_best_device_is_one_that_exists():
    best = device.get_device()
    assert torch.ones(1, device=best).device.type == best


def test_a_gpu_is_used_when_there_is_one():
    if not (device.is_cuda_available() or device.is_mps_available()):
        assert device.get_device() == "cpu"
    else:
        assert device.get_device() != "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_no_memory_was_used():
    assert device.get_max_cuda_memory() == 0
