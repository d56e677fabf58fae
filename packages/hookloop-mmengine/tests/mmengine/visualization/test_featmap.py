"""Feature maps as pictures."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.visualization import Visualizer
from hookloop_mmengine.visualization.featmap import convert_overlay_heatmap, draw_featmap


def test_low_values_are_blue_and_high_ones_red():
    heat = convert_overlay_heatmap(torch.tensor([[0.0, 1.0]]))
    assert heat.shape == (1, 2, 3)
    assert heat[0, 0].argmax() == 2
    assert heat[0, 1].argmax() == 0
    flat = convert_overlay_heatmap(np.ones((1, 2, 2)))
    assert (flat == flat[0, 0]).all()
    assert convert_overlay_heatmap(np.ones((3, 2, 2))).shape == (2, 2, 3)
    with pytest.raises(AssertionError, match="1 or 3 channels"):
        convert_overlay_heatmap(np.ones((2, 2, 2)))


def test_a_map_is_laid_over_an_image():
    image = np.full((1, 2, 3), 100, np.uint8)
    feature = torch.tensor([[0.0, 1.0]])
    heat = convert_overlay_heatmap(feature)
    mixed = convert_overlay_heatmap(feature, image, alpha=0.25)
    assert np.abs(mixed - (0.75 * image + 0.25 * heat)).max() <= 0.5


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (4, 6, 3)),
        ({"channel_reduction": "select_max"}, (4, 6, 3)),
        ({"channel_reduction": None, "topk": 2, "arrangement": (1, 2)}, (4, 12, 3)),
        ({"resize_shape": (8, 10)}, (8, 10, 3)),
    ],
)
def test_a_picture_of_channels(options, shape):
    assert draw_featmap(torch.rand(5, 4, 6), **options).shape == shape
    assert Visualizer.draw_featmap(torch.rand(5, 4, 6), **options).shape == shape


def test_the_strongest_channel_is_selected():
    features = torch.zeros(2, 1, 2)
    features[1, 0, 1] = 3
    picture = draw_featmap(features, channel_reduction="select_max")
    assert picture[0, 1].argmax() == 0


def test_an_image_of_another_size():
    image = np.zeros((8, 8), np.uint8)
    with pytest.warns(UserWarning, match=r"the map is interpolated"):
        assert draw_featmap(torch.rand(1, 4, 4), image).shape == (8, 8, 3)
    with pytest.warns(UserWarning, match=r"the map is interpolated"):
        assert draw_featmap(torch.rand(1, 4, 4), image, resize_shape=(2, 2)).shape == (2, 2, 3)


@pytest.mark.parametrize(
    ("features", "options"),
    [
        (np.ones((1, 2, 2)), {}),
        (torch.ones(2, 2), {}),
        (torch.ones(1, 2, 2), {"channel_reduction": "sum"}),
        (torch.ones(2, 2, 2), {"channel_reduction": None, "topk": 0}),
        (torch.ones(2, 2, 2), {"channel_reduction": None, "topk": 9, "arrangement": (2, 2)}),
    ],
)
def test_what_does_not_fit_is_rejected(features, options):
    with pytest.raises(AssertionError):
        draw_featmap(features, **options)
