"""Depths and colours as pictures."""

import numpy as np
import pytest
import torch

from hookloop import dialects
from hookloop_dialects.pointrix.utils.visualize import (
    visualize_depth,
    visualize_flow,
    visualize_rgb,
)


def test_near_is_blue_and_far_is_red():
    near_and_far = visualize_depth(torch.tensor([[1.0, 2.0]]), tensorboard=True)
    assert near_and_far[:, 0, 0].tolist() == [0, 0, 0.5]
    assert near_and_far[:, 0, 1].tolist() == pytest.approx([0.5, 0, 0], abs=1e-5)


def test_bytes_have_the_colours_last_and_arrays_are_accepted():
    picture = visualize_depth(np.array([[1.0, 2.0, 3.0]]))
    assert picture.shape == (1, 3, 3) and picture.dtype == np.uint8
    assert picture[0, 1].tolist() == [127, 255, 127]  # Half way is green.


def test_the_background_does_not_count_as_near():
    with_background = visualize_depth(torch.tensor([[0.0, 1.0, 2.0]]), tensorboard=True)
    without = visualize_depth(torch.tensor([[1.0, 2.0]]), tensorboard=True)
    assert torch.equal(with_background[..., 1:], without)


@pytest.mark.parametrize("depth", [[[2.0, 2.0]], [[0.0, 0.0]], [[float("nan"), 1.0]]])
def test_flat_and_broken_depths_are_pictures_too(depth):
    assert visualize_depth(torch.tensor(depth), tensorboard=True).isfinite().all()


def test_limits_can_be_given():
    picture = visualize_depth(torch.tensor([[1.0, 9.0]]), minmax=(0, 2), tensorboard=True)
    middle, beyond = picture[:, 0, 0], picture[:, 0, 1]
    assert middle.tolist() == pytest.approx([0.5, 1, 0.5], abs=1e-5)
    assert beyond.tolist() == pytest.approx([0.5, 0, 0], abs=1e-5)


def test_colours_are_limited_to_bytes():
    rgb = torch.tensor([[[-1.0]], [[0.5]], [[2.0]]], requires_grad=True)
    assert visualize_rgb(rgb).tolist() == [[[0, 127, 255]]]


def test_hook_files_import_both():
    with dialects.alias("pointrix"):
        from pointrix.utils.visualize import visualize_depth as aliased
    assert aliased is visualize_depth


def test_motions_are_coloured_by_direction_and_length():
    flow = torch.zeros(2, 1, 3)
    flow[0, 0, 1], flow[0, 0, 2] = 1.0, 2.0  # To the right, the second twice as far.
    picture = visualize_flow(flow, tensorboard=True)
    assert picture.shape == (3, 1, 3)
    assert picture[:, 0, 0].tolist() == [1.0, 1.0, 1.0]  # Nothing moves: white.
    assert picture[:, 0, 2].tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    assert picture[:, 0, 1].tolist() == pytest.approx([1.0, 0.5, 0.5], abs=1e-6)
    pixels = visualize_flow(flow.permute(1, 2, 0).numpy())
    assert pixels.shape == (1, 3, 3) and pixels[0, 2].tolist() == [255, 0, 0]
