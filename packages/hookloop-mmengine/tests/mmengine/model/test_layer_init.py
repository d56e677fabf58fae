"""Functions that initialize one layer."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.model import (
    bias_init_with_prob,
    caffe2_xavier_init,
    constant_init,
    kaiming_init,
    normal_init,
    trunc_normal_init,
    uniform_init,
    xavier_init,
)


def test_a_constant_fills_weight_and_bias():
    layer = nn.Linear(2, 3)
    constant_init(layer, 2, bias=3)
    assert layer.weight.eq(2).all()
    assert layer.bias.eq(3).all()


@pytest.mark.parametrize(
    "init",
    [
        lambda layer: constant_init(layer, 1),
        xavier_init,
        normal_init,
        trunc_normal_init,
        uniform_init,
        kaiming_init,
        caffe2_xavier_init,
    ],
)
def test_a_layer_without_weights_is_left_alone(init):
    init(nn.ReLU())
    init(nn.BatchNorm1d(2, affine=False))
    bare = nn.Linear(2, 2, bias=False)
    init(bare)
    assert bare.bias is None


@pytest.mark.parametrize("init", [xavier_init, kaiming_init])
def test_a_distribution_is_one_of_two(init):
    layer = nn.Linear(4, 4)
    init(layer, bias=1, distribution="uniform")
    assert layer.bias.eq(1).all()
    with pytest.raises(AssertionError, match="uniform or normal, but got round"):
        init(layer, distribution="round")


def test_a_normal_distribution_is_cut_off():
    layer = nn.Linear(50, 50)
    torch.manual_seed(0)
    trunc_normal_init(layer, mean=1, std=5, a=0.5, b=1.5, bias=2)
    assert layer.weight.min() >= 0.5
    assert layer.weight.max() <= 1.5
    uniform_init(layer, a=3, b=4)
    assert 3 <= layer.weight.min() <= layer.weight.max() <= 4


def test_a_bias_means_a_probability():
    assert torch.sigmoid(torch.tensor(bias_init_with_prob(0.2))).item() == pytest.approx(0.2)
