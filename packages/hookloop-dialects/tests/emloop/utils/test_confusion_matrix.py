"""Count pairs of classes."""

import numpy as np
import pytest

from hookloop_dialects.emloop.utils import confusion_matrix


def test_pairs_are_counted():
    matrix = confusion_matrix(np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1]), 3)
    assert matrix.tolist() == [[1, 0, 0], [1, 2, 0], [0, 0, 0]]
    assert matrix.dtype == np.int32


@pytest.mark.parametrize(
    ("expected", "predicted", "message"),
    [
        ([0.5], [1], "not integers"),
        ([0, 1], [1], "differ in length"),
        ([0, 2], [1, 1], "above 1"),
        ([0, -1], [1, 1], "below 0"),
    ],
)
def test_what_is_wrong_is_an_assertion(expected, predicted, message):
    with pytest.raises(AssertionError, match=message):
        confusion_matrix(np.array(expected), np.array(predicted), 2)
