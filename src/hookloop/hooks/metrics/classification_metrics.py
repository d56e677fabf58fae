"""`ClassificationMetrics`: precision, recall, F1, accuracy and specificity of an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.errors import HookError, nearest
from hookloop.hooks.metrics.accumulate_variables import AccumulateVariables, Part, to_array
from hookloop.metrics.confusion import (
    AVERAGES,
    SCORES,
    Average,
    accuracy,
    average_scores,
    class_scores,
    confusion_matrix,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.engine.run import Run

ALL = (*SCORES, "accuracy")


class ClassificationMetrics(AccumulateVariables):
    """Put precision, recall, F1, accuracy and specificity of each epoch into the metric store.

    Targets below zero do not count. The names are ``<stream>/<prefix><metric>``, or without an
    average ``<stream>/<prefix><metric>/<class>``.

    Args:
        predictions: The variable with the predicted classes, or with scores (classes in the second
            dimension; if it has size 1 or is missing, a score above 0 means class 1).
        targets: The variable with the true classes.
        average: ``"macro"``, ``"micro"``, ``"weighted"``, ``"binary"`` for class 1 of two, or None
            for each class separately.
        metrics: Which to compute; by default those of the five that nothing else computes.
        prefix: Text to put before the names, for a model with several heads.
        streams: Where: ``"train"``, ``"val"``, ``"test"`` or names of single streams; everywhere
            by default.

    Example:
        >>> ClassificationMetrics(metrics=["f1", "recall"]).writes
        ('*/f1', '*/recall')
    """

    draws_random_numbers = False

    def __init__(
        self,
        predictions: str = "output",
        targets: str = "targets",
        *,
        average: Average | None = "macro",
        metrics: Sequence[str] | None = None,
        prefix: str = "",
        streams: Sequence[str] | None = None,
    ) -> None:
        super().__init__([predictions, targets], streams)
        if average is not None and average not in AVERAGES:
            raise HookError(
                f"ClassificationMetrics: average={average!r}: write {', '.join(AVERAGES)} or None."
                f"{nearest(str(average), AVERAGES)}"
            )
        for name in metrics or ():
            if name not in ALL:
                raise HookError(
                    f"ClassificationMetrics: no metric '{name}'.{nearest(name, ALL)} "
                    f"There are {', '.join(ALL)}."
                )
        self.predictions = predictions
        self.targets = targets
        self.average = average
        self.metrics = tuple(metrics or ALL)
        self._chosen = metrics is not None
        self.prefix = prefix
        # Accuracy has one value for all classes, also without an average.
        ends = ["" if average or name == "accuracy" else "/*" for name in self.metrics]
        self.writes = tuple(
            f"*/{prefix}{name}{end}" for name, end in zip(self.metrics, ends, strict=True)
        )

    def reduce(self, name: str, value: Tensor) -> Tensor:
        # Class numbers instead of scores: an epoch of scores may not fit into memory.
        return to_classes(value) if name == self.predictions else true_classes(value)

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Part]]) -> None:
        matrix = count_pairs(values[self.targets], values[self.predictions])
        for name, value in self._compute(matrix).items():
            full = f"{stream}/{self.prefix}{name}"
            if run.metrics.series(full).is_current:
                # Another part has computed this metric, and two values under one name would mix.
                # By default ours is left out; a user who asked for it has to decide.
                if not self._chosen:
                    continue
                raise HookError(
                    f"ClassificationMetrics: '{full}' is already computed: leave it out of "
                    "metrics=, or give a prefix=."
                )
            run.metrics.put(full, value)

    def _compute(self, matrix: NDArray[np.int64]) -> dict[str, float]:
        found = {"accuracy": accuracy(matrix)}
        if self.average is not None:
            found |= average_scores(matrix, self.average)
            return {name: found[name] for name in self.metrics}
        scores = class_scores(matrix)
        return {name: found[name] for name in self.metrics if name in found} | {
            f"{name}/{index}": float(value)
            for name in self.metrics
            if name in scores
            for index, value in enumerate(scores[name])
        }


def to_classes(scores: Tensor) -> Tensor:
    """Turn scores into predicted classes; classes stay as they are."""
    if not scores.is_floating_point():
        return scores
    if scores.ndim > 1 and scores.shape[1] > 1:
        return scores.argmax(dim=1)
    # A column of single scores becomes a vector, to match targets without the extra dimension.
    return (scores > 0).long().flatten(0, min(1, scores.ndim - 1))


def true_classes(targets: Tensor) -> Tensor:
    """Turn targets that are probabilities, as `MixUp` makes them, into the likeliest class."""
    is_shares = targets.is_floating_point() and targets.ndim > 1 and targets.shape[1] > 1
    return targets.argmax(dim=1) if is_shares else targets


def count_pairs(
    targets: list[Part], predictions: list[Part], num_classes: int | None = None
) -> NDArray[np.int64]:
    """Build the confusion matrix of an epoch from its batches."""
    true, predicted = (
        np.concatenate([to_array(part).ravel() for part in parts]).astype(np.int64)
        for parts in (targets, predictions)
    )
    return confusion_matrix(true, predicted, num_classes)
