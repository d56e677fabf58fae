"""``emloop.utils.confusion_matrix``: count pairs of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def confusion_matrix(
    expected: NDArray[Any], predicted: NDArray[Any], num_classes: int
) -> NDArray[np.int32]:
    """Return how often each class (row) was taken for each class (column)."""
    for classes in (expected, predicted):
        assert np.issubdtype(classes.dtype, np.integer), "the classes are not integers"
    assert expected.shape == predicted.shape, "expected and predicted differ in length"
    both = np.concatenate([expected, predicted])
    assert both.max() < num_classes, f"there are classes above {num_classes - 1}"
    assert both.min() >= 0, "there are classes below 0"
    matrix = np.zeros((num_classes, num_classes), dtype=np.int32)
    np.add.at(matrix, (expected, predicted), 1)
    return matrix
