"""Questions about the layers of a model."""

import pytest
from torch import nn

from hookloop_mmengine.utils.dl_utils import has_batch_norm, is_norm, mmcv_full_available


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm2d(1), nn.InstanceNorm1d(1), nn.GroupNorm(1, 1), nn.LayerNorm(1)]
)
def test_layers_that_normalize(layer):
    assert is_norm(layer)
    assert not is_norm(layer, exclude=type(layer))
    assert is_norm(layer, exclude=(nn.Linear,))
    assert not is_norm(nn.Linear(1, 1))
    with pytest.raises(TypeError, match='"exclude" must be either None or type'):
        is_norm(layer, exclude="BatchNorm2d")


def test_batch_norm_is_found_inside():
    assert has_batch_norm(nn.Sequential(nn.Sequential(nn.BatchNorm1d(1))))
    assert not has_batch_norm(nn.Sequential(nn.LayerNorm(1)))


def test_mmcv_is_not_here():
    assert not mmcv_full_available()
