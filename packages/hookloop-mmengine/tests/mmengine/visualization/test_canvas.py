"""An image, and the masks that are drawn on it."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.visualization import Visualizer


@pytest.fixture
def visualizer():
    return Visualizer(image=np.zeros((40, 60, 3)))


@pytest.mark.parametrize(("height", "width"), [(10, 10), (7, 31), (200, 133)])
def test_an_image_comes_back_as_it_was_set(height, width):
    image = np.random.default_rng(0).integers(0, 255, (height, width, 3)).astype(np.uint8)
    visualizer = Visualizer(image=image)
    assert np.array_equal(visualizer.get_image(), image)
    # A second image replaces the first, of another size.
    visualizer.set_image(image[:5, :4])
    assert np.array_equal(visualizer.get_image(), image[:5, :4])


def test_without_an_image_there_is_none():
    with pytest.raises(AssertionError, match="Please set image using `set_image`"):
        Visualizer().get_image()
    with pytest.raises(AssertionError, match="An image is needed"):
        Visualizer().set_image(None)


def test_masks_are_blended(visualizer):
    masks = np.zeros((2, 40, 60), bool)
    masks[0, :20], masks[1, :, :30] = True, True
    colors = [(255, 0, 0), (0, 0, 200)]
    assert visualizer.draw_binary_masks(torch.from_numpy(masks), colors, [0.5, 1]) is visualizer
    image = visualizer.get_image()
    assert image[0, 59].tolist() == [128, 0, 0]
    assert image[0, 0].tolist() == image[39, 0].tolist() == [0, 0, 200]
    assert image[39, 59].tolist() == [0, 0, 0]


@pytest.mark.parametrize("masks", [np.ones((40, 60)), np.ones((4, 6), bool)])
def test_other_masks_are_rejected(visualizer, masks):
    with pytest.raises(AssertionError, match="binary_masks"):
        visualizer.draw_binary_masks(masks)


def test_what_else_mmengine_draws_is_left_to_the_graft(visualizer):
    assert not hasattr(visualizer, "draw_bboxes")
    with pytest.raises(AttributeError, match="draw_bboxes is not offered.*--graft mmengine"):
        visualizer.draw_bboxes(torch.ones(4))
    with pytest.raises(AttributeError, match="no attribute 'zebra'"):
        visualizer.zebra()
