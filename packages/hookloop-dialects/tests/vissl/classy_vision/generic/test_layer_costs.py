"""The operations of single layers."""

import pytest
import torch
from torch import nn

from hookloop_dialects.vissl.classy_vision.generic.layer_costs import (
    ClassyProfilerNotImplementedError,
    layer_flops,
)


def cost(layer, *shape):
    given = torch.ones(*shape)
    return layer_flops(layer, (given,), layer(given))


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (nn.Linear(3, 2), (1, 3), 8),
        (nn.Linear(3, 2, bias=False), (1, 5, 3), 30),
        (nn.Conv1d(2, 4, 3), (1, 2, 5), 4 * 3 * 2 * 3),
        (nn.Conv2d(4, 4, 3, padding=1, groups=2), (1, 4, 5, 5), 100 * 2 * 9),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3), 2 * 8 * 8),
        (nn.BatchNorm2d(2), (1, 2, 3, 3), 36),
        (nn.LayerNorm(4), (1, 4), 8),
        (nn.ReLU(), (1, 6), 6),
        (nn.MaxPool2d(2), (1, 2, 4, 4), 8 * 4),
        (nn.AvgPool2d((2, 1)), (1, 1, 4, 4), 8 * 2),
        (nn.AdaptiveAvgPool2d(1), (1, 3, 4, 4), 3 * 16),
        (nn.Dropout(), (1, 6), 0),
        (nn.Flatten(), (1, 2, 3), 0),
    ],
)
def test_a_layer_costs_as_in_classy_vision(layer, shape, expected):
    assert cost(layer, *shape) == expected


def test_a_layer_with_parameters_of_no_known_kind_is_named():
    with pytest.raises(ClassyProfilerNotImplementedError, match=r"PReLU.*flops"):
        cost(nn.PReLU(), 1, 2)
