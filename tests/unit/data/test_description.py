import numpy as np
import pytest
import torch

from hookloop.data.description import describe, note_batch
from hookloop.errors import DataError


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


@pytest.mark.parametrize(
    ("phase", "output", "note"),
    [
        ("train", [], "in training, iteration 4: the batch is (float32[2])"),
        ("val", [], "in the phase val, after iteration 3: the batch is (float32[2])"),
        ("train", [torch.zeros(3)], "the batch is (float32[2]), the output is float32[3]"),
        ("train", [[torch.zeros(3)]], "The model returned a list: take the part that you need"),
    ],
)
def test_an_error_gets_a_note_about_the_batch(phase, output, note):
    error = ValueError("shapes")
    note_batch(error, phase, 3, (torch.zeros(2),), *output)
    (added,) = error.__notes__
    assert note in added
    assert ("the output is" in added) == bool(output)


def test_an_error_of_hookloop_gets_no_note():
    error = DataError("train_data is empty")
    note_batch(error, "train", 3, torch.zeros(2))
    assert not hasattr(error, "__notes__")
