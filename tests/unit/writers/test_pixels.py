import numpy as np
import pytest
import torch
from tests.readback import png

from hookloop.errors import HookloopError
from hookloop.writers.pixels import encode_png, to_pixels


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_png_is_decoded_to_the_same_pixels(tmp_path, channels):
    pixels = np.random.default_rng(0).integers(0, 256, (9, 5, channels), dtype=np.uint8)
    (tmp_path / "x.png").write_bytes(encode_png(pixels))
    assert np.array_equal(png(tmp_path / "x.png"), pixels.squeeze())


def test_tensors_have_channels_first_and_arrays_last():
    assert to_pixels(torch.zeros(3, 5, 7)).shape == (5, 7, 3)
    assert to_pixels(np.zeros((5, 7, 3))).shape == (5, 7, 3)
    assert to_pixels(torch.zeros(5, 7)).shape == (5, 7, 1)
    assert to_pixels(torch.zeros(5, 7, 3)).shape == (5, 7, 3)  # No other reading is possible.


def test_values_are_scaled_and_clipped():
    floats = to_pixels(np.array([[0.0, 0.5, 2.0, np.nan]]))
    assert floats.ravel().tolist() == [0, 128, 255, 0]
    assert to_pixels(np.array([[0, 300]])).ravel().tolist() == [0, 255]
    assert to_pixels(torch.tensor([[True, False]])).ravel().tolist() == [255, 0]


def test_a_record_does_not_change_with_its_source():
    source = torch.zeros(2, 2, dtype=torch.uint8)
    pixels = to_pixels(source)
    source += 1
    assert pixels.max() == 0


def test_a_figure_is_drawn():
    from matplotlib.figure import Figure

    assert to_pixels(Figure(figsize=(2, 1), dpi=50)).shape == (50, 100, 3)


@pytest.mark.parametrize("image", [torch.zeros(2, 5, 7), np.zeros(4), np.zeros((1, 2, 3, 4))])
def test_other_shapes_are_rejected(image):
    with pytest.raises(HookloopError, match="is not an image"):
        to_pixels(image)
