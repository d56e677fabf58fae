"""The confusion matrix, and its scores: precision, recall, F1, accuracy, specificity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hookloop.errors import MetricError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Average = Literal["macro", "micro", "weighted", "binary"]
AVERAGES: tuple[str, ...] = get_args(Average)
SCORES = ("precision", "recall", "f1", "specificity")


def confusion_matrix(
    targets: NDArray[np.int64], predictions: NDArray[np.int64], num_classes: int | None = None
) -> NDArray[np.int64]:
    """Count pairs of classes: rows are the true ones, columns the predicted ones.

    Targets below zero mark positions to ignore, as ``ignore_index`` does in torch's losses.

    >>> confusion_matrix(np.array([0, 1, 1, -100]), np.array([0, 1, 0, 1]))
    array([[1, 0],
           [1, 1]])
    """
    if targets.shape != predictions.shape:
        raise MetricError(
            f"There are {targets.size} targets but {predictions.size} predicted classes."
        )
    counted = targets >= 0
    targets, predictions = targets[counted], predictions[counted]
    seen = int(max(targets.max(initial=0), predictions.max(initial=0))) + 1
    size = max(seen, num_classes or 0)
    if num_classes is not None and seen > num_classes:
        raise MetricError(f"Class {seen - 1} occurs, but there are {num_classes} classes.")
    if predictions.min(initial=0) < 0:
        raise MetricError("A predicted class is below zero.")
    # One number per pair of classes, so that a single pass counts all of them.
    pairs = np.bincount(targets * size + predictions, minlength=size * size)
    return pairs.reshape(size, size).astype(np.int64)


def class_scores(matrix: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Compute each score for each class; a share of nothing is 0, as in scikit-learn.

    >>> class_scores(np.array([[1, 0], [1, 1]]))["recall"]
    array([1. , 0.5])
    """
    right = np.diag(matrix).astype(np.float64)
    true, predicted, total = matrix.sum(1), matrix.sum(0), matrix.sum()
    negatives = total - true
    precision, recall = _share(right, predicted), _share(right, true)
    return {
        "precision": precision,
        "recall": recall,
        "f1": _share(2 * right, true + predicted),
        "specificity": _share(negatives - (predicted - right), negatives),
    }


def average_scores(matrix: NDArray[np.int64], average: Average) -> dict[str, float]:
    """Average each score over the classes.

    ``macro`` is the mean over the classes that occur, ``weighted`` weights each class by how often
    it is true, ``micro`` counts all decisions together, and ``binary`` is the score of class 1.
    """
    if average == "binary":
        if len(matrix) > 2:
            raise MetricError(f"average='binary' needs two classes, there are {len(matrix)}.")
        both = np.pad(matrix, (0, 2 - len(matrix)))  # Class 1 may not have occurred.
        return {name: float(values[1]) for name, values in class_scores(both).items()}
    scores = class_scores(matrix)
    if average == "micro":
        right, total, size = np.trace(matrix), matrix.sum(), len(matrix)
        # A wrong decision is one false positive and one false negative, so these three are equal.
        share = float(right / total) if total else 0.0
        wrong = total - right
        negatives = total * (size - 1)
        return {
            "precision": share,
            "recall": share,
            "f1": share,
            "specificity": float((negatives - wrong) / negatives) if negatives else 0.0,
        }
    support = matrix.sum(1).astype(np.float64)
    # A class that is neither true nor predicted does not count, as in scikit-learn.
    occurring = (support + matrix.sum(0)) > 0
    weights = support if average == "weighted" else occurring.astype(np.float64)
    total = weights.sum()
    return {
        name: float((values * weights).sum() / total) if total else 0.0
        for name, values in scores.items()
    }


def accuracy(matrix: NDArray[np.int64]) -> float:
    """Return the share of correct decisions."""
    total = matrix.sum()
    return float(np.trace(matrix) / total) if total else 0.0


def _share(part: NDArray[np.float64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole != 0)
