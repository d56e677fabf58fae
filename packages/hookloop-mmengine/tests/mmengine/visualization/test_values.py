"""What drawing functions are given."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.visualization import utils
from hookloop_mmengine.visualization.values import as_rgb


def test_values_are_converted():
    assert utils.tensor2ndarray(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    array = np.ones(2)
    assert utils.tensor2ndarray(array) is array
    assert utils.value2list(3, int, 2) == [3, 3]
    assert utils.value2list([1], int, 2) == [1]


def test_values_are_checked():
    utils.check_type_and_length("a", [1, 2], (int, list), 2)
    with pytest.raises(TypeError, match="`a` should be <class 'str'>"):
        utils.check_type("a", 3, str)
    with pytest.raises(AssertionError, match="greater than 3, but got 1"):
        utils.check_length("a", [1], 3)


def test_colors():
    assert utils.color_val_matplotlib(["red", (255, 0, 51)]) == ["red", (1, 0, 0.2)]
    assert utils.color_str2rgb("red") == as_rgb("red") == (255, 0, 0)
    for wrong in ((1, 2), (0, 0, 256)):
        with pytest.raises(AssertionError, match="three numbers from 0 to 255"):
            utils.color_val_matplotlib(wrong)
    with pytest.raises(TypeError, match="Invalid type for color"):
        utils.color_val_matplotlib(3)
