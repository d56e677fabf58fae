import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as expected_matrix

from hookloop.errors import MetricError
from hookloop.metrics.confusion import average_scores, confusion_matrix


def test_rows_are_true_classes_and_columns_predicted_ones():
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    expected = expected_matrix(targets, predictions)
    assert np.array_equal(confusion_matrix(targets, predictions), expected)


def test_num_classes_sets_the_size_and_negative_targets_are_ignored():
    matrix = confusion_matrix(np.array([0, -100, 1]), np.array([1, 2, 1]), num_classes=4)
    assert matrix.shape == (4, 4) and matrix.sum() == 2


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", "binary"])
def test_scores_of_an_empty_matrix_are_zero(average):
    nothing = confusion_matrix(np.array([], int), np.array([], int), 2)
    assert set(average_scores(nothing, average).values()) == {0.0}


@pytest.mark.parametrize(
    ("targets", "predictions", "classes", "message"),
    [
        ([0, 1], [0], None, "2 targets but 1 predicted classes"),
        ([0, 3], [0, 1], 3, "Class 3 occurs, but there are 3 classes"),
        ([0, 1], [0, -1], None, "below zero"),
    ],
)
def test_invalid_classes_are_rejected(targets, predictions, classes, message):
    with pytest.raises(MetricError, match=message):
        confusion_matrix(np.array(targets), np.array(predictions), classes)


def test_binary_scores_when_class_one_never_occurs():
    scores = average_scores(confusion_matrix(np.zeros(3, int), np.zeros(3, int)), "binary")
    assert scores == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "specificity": 1.0}
