"""Batch norm layers that synchronize, and others."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.model import convert_sync_batchnorm, revert_sync_batchnorm


def make():
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.SyncBatchNorm(2), nn.ReLU()))


def test_a_model_runs_in_one_process_after_it():
    net = make()
    kept = net[1][0]
    reverted = revert_sync_batchnorm(net.eval())
    assert reverted[1][0].weight is kept.weight
    assert reverted[1][0].running_mean is kept.running_mean
    assert not reverted[1][0].training
    assert reverted(torch.ones(3, 2)).shape == (3, 2)
    assert isinstance(revert_sync_batchnorm(nn.SyncBatchNorm(2)), nn.modules.batchnorm._BatchNorm)


def test_it_can_be_converted_back():
    net = convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm2d(3, affine=False)))
    assert [type(layer) for layer in net] == [nn.SyncBatchNorm, nn.SyncBatchNorm]
    assert net[1].weight is None
    with pytest.raises(ValueError, match='should be "torch" or "mmcv", but got other'):
        convert_sync_batchnorm(net, "other")
