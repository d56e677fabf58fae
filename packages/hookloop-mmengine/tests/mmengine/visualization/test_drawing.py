"""Draw on an image."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.visualization import Visualizer


@pytest.fixture
def visualizer():
    return Visualizer(image=np.zeros((40, 60, 3)))


def changed(visualizer):
    """The pixels that are not black any more."""
    return visualizer.get_image().sum(-1) > 0


DRAWN = {
    "draw_points": lambda one: one.draw_points(torch.tensor([20, 10]), "r", sizes=np.array([40])),
    "draw_texts": lambda one: one.draw_texts("hello", torch.tensor([5, 5]), colors=(0, 255, 0)),
    "draw_lines": lambda one: one.draw_lines(torch.tensor([5, 30]), torch.tensor([10, 10])),
    "draw_circles": lambda one: one.draw_circles(torch.tensor([20, 20]), torch.tensor([8])),
    "draw_bboxes": lambda one: one.draw_bboxes(torch.tensor([5, 5, 30, 20])),
    "draw_polygons": lambda one: one.draw_polygons(torch.tensor([[5, 5], [30, 5], [10, 20]])),
    "draw_binary_masks": lambda one: one.draw_binary_masks(np.eye(40, 60, dtype=bool)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_calls_can_be_chained_and_draw(visualizer, name):
    assert DRAWN[name](visualizer) is visualizer
    assert changed(visualizer).any()


def test_a_box_is_where_it_should_be(visualizer):
    visualizer.draw_bboxes(
        torch.tensor([[10, 5, 40, 30]]), "r", face_colors=(255, 255, 255), alpha=1
    )
    found = changed(visualizer)
    assert found[6:29, 11:39].all()
    assert not found[:3].any()
    assert not found[:, 43:].any()


def test_several_things_with_settings_of_their_own(visualizer):
    visualizer.draw_texts(
        ["a", "b"],
        torch.tensor([[5, 5], [30, 20]]),
        font_sizes=[8, 12],
        colors=["r", (0, 0, 255)],
        vertical_alignments=["top", "center"],
        bboxes=[{"facecolor": "w"}, {"facecolor": "g"}],
    ).draw_points(torch.tensor([[1, 1], [2, 2]]), colors=["r", "b"]).draw_circles(
        torch.tensor([[20, 20], [30, 20]]), torch.tensor([3, 4]), line_widths=[1, 2]
    )
    assert [text.get_text() for text in visualizer.ax_save.texts] == ["a", "b"]
    assert [text.get_fontsize() for text in visualizer.ax_save.texts] == [8, 12]


def test_masks_are_blended(visualizer):
    masks = np.zeros((2, 40, 60), bool)
    masks[0, :20], masks[1, :, :30] = True, True
    visualizer.draw_binary_masks(torch.from_numpy(masks), ["r", (0, 0, 200)], alphas=[0.5, 1])
    image = visualizer.get_image()
    assert image[0, 59].tolist() == [128, 0, 0]
    assert image[0, 0].tolist() == image[39, 0].tolist() == [0, 0, 200]
    assert image[39, 59].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("what", "draw"),
    [
        ("text", lambda one: one.draw_texts("a", torch.tensor([70, 5]))),
        ("line", lambda one: one.draw_lines(torch.tensor([5, 70]), torch.tensor([5, 5]))),
        ("circle", lambda one: one.draw_circles(torch.tensor([5, 5]), torch.tensor([9]))),
        ("bbox", lambda one: one.draw_bboxes(torch.tensor([5, 5, 70, 9]))),
        ("polygon", lambda one: one.draw_polygons(torch.tensor([[-1, 5], [9, 9]]))),
    ],
)
def test_what_is_outside_is_a_warning(visualizer, what, draw):
    with pytest.warns(UserWarning, match=f"The {what} is out of bounds") as warned:
        draw(visualizer)
    assert len(warned) == 1


@pytest.mark.parametrize(
    ("error", "draw"),
    [
        (TypeError, lambda one: one.draw_points([1, 2])),
        (AssertionError, lambda one: one.draw_points(torch.ones(3))),
        (TypeError, lambda one: one.draw_texts(3, torch.ones(2))),
        (AssertionError, lambda one: one.draw_texts(["a", "b"], torch.ones(2))),
        (AssertionError, lambda one: one.draw_texts(["a", "b"], torch.ones(2, 2), colors=["r"])),
        (AssertionError, lambda one: one.draw_lines(torch.ones(2), torch.ones(2, 2))),
        (AssertionError, lambda one: one.draw_circles(torch.ones(2), torch.ones(2))),
        (AssertionError, lambda one: one.draw_bboxes(torch.tensor([9, 5, 3, 9]))),
        (AssertionError, lambda one: one.draw_binary_masks(np.ones((40, 60)))),
        (AssertionError, lambda one: one.draw_binary_masks(np.ones((4, 6), bool))),
        (TypeError, lambda one: one.draw_polygons(3)),
    ],
)
def test_what_cannot_be_drawn_is_rejected(visualizer, error, draw):
    with pytest.raises(error):
        draw(visualizer)
