"""Torch's version, and base classes of its layers."""

import torch
from torch import nn

from hookloop_mmengine.utils.dl_utils import TORCH_VERSION, parrots_wrapper


def test_they_are_those_of_torch():
    assert torch.__version__ == TORCH_VERSION
    assert issubclass(nn.BatchNorm2d, parrots_wrapper._BatchNorm)
    assert issubclass(nn.InstanceNorm2d, parrots_wrapper._InstanceNorm)
    assert issubclass(nn.ConvTranspose2d, parrots_wrapper._ConvTransposeMixin)
    assert issubclass(nn.SyncBatchNorm, parrots_wrapper.SyncBatchNorm)
    assert parrots_wrapper.is_rocm_pytorch() is False
    assert "PyTorch" in parrots_wrapper.get_build_config()
