"""Fields with a value for each pixel."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.structures import PixelData


def make():
    return PixelData(metainfo={"id": 3}, image=np.arange(12).reshape(1, 3, 4), map=torch.ones(3, 4))


def test_fields_share_height_and_width():
    data = make()
    assert data.shape == (3, 4)
    assert data.map.shape == (1, 3, 4)
    with pytest.raises(AssertionError, match=r"of other are \(4, 4\), but.*\(3, 4\)"):
        data.other = torch.ones(1, 4, 4)
    with pytest.raises(AssertionError, match="should be a tensor or an array"):
        data.other = [1]
    with pytest.raises(AssertionError, match="has 4 dimensions"):
        data.other = torch.ones(1, 1, 3, 4)
    assert PixelData().shape is None


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ((slice(1, 3), slice(0, 2)), [[4, 5], [8, 9]]),
        ((1, 2), [[6]]),
        ((-1, slice(None)), [[8, 9, 10, 11]]),
        ((slice(None, None, 2), -2), [[2], [10]]),
    ],
)
def test_a_part_keeps_all_dimensions(part, wanted):
    taken = make()[part]
    assert taken.image[0].tolist() == wanted
    assert taken.map.shape[1:] == taken.image.shape[1:]
    assert taken.id == 3


@pytest.mark.parametrize(
    ("part", "error"),
    [(1, TypeError), ((1,), AssertionError), ((1, "a"), TypeError), ((3, 0), IndexError)],
)
def test_another_part_is_rejected(part, error):
    with pytest.raises(error):
        make()[part]
    with pytest.raises((AssertionError, TypeError)):
        PixelData()[0, 0]
