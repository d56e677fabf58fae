import numpy as np
import pytest
import torch

from hookloop.data.description import describe


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(2, 3, dtype=torch.float16), "float16[2, 3]"),
        (torch.zeros(2, device="meta"), "float32[2] on meta"),
        (
            [torch.zeros(1), (torch.ones(2, dtype=torch.bool), None)],
            "[float32[1], (bool[2], NoneType)]",
        ),
        ({"text": ["a"]}, "{text: [str]}"),
        (np.zeros((2, 2)), "ndarray[2, 2]"),
        ([0] * 100, "[int, int, int, int, int, int, int, int, ... 100 in all]"),
        (object(), "object"),
    ],
)
def test_types_and_shapes_are_named(value, words):
    assert describe(value) == words
