"""`ClassificationMetrics`: precision, recall, F1 and accuracy of each epoch."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np

from hookloop.dialects import Average, accuracy, average_scores, class_scores, confusion_matrix
from hookloop_dialects.emloop.hooks.accumulate_variables import AccumulateVariables
from hookloop_dialects.emloop.types import EpochData


class ClassificationMetrics(AccumulateVariables):
    """Write precision, recall, f1 and accuracy into the epoch's data, without scikit-learn.

    Args:
        predicted_variable: The predicted classes.
        gt_variable: The true classes.
        f1_average: How to average over classes, as in scikit-learn. None gives an array with an
            entry per class; ``"binary"`` adds the specificity.
        var_prefix: Prefix of the names.
        kwargs: See `AbstractHook`.
    """

    def __init__(
        self,
        predicted_variable: str,
        gt_variable: str,
        f1_average: str | None = None,
        var_prefix: str = "",
        **kwargs: object,
    ) -> None:
        super().__init__(variables=[predicted_variable, gt_variable], **kwargs)
        if f1_average is not None and f1_average not in get_args(Average):
            raise ValueError(
                f"f1_average='{f1_average}': write {', '.join(get_args(Average))} or None."
            )
        self._predicted_variable = predicted_variable
        self._gt_variable = gt_variable
        self._f1_average = cast("Average | None", f1_average)
        self._var_prefix = var_prefix
        names = ["precision", "recall", "f1", "accuracy"]
        names += ["specificity"] if f1_average == "binary" else []
        self._names = names
        # Lets the dialect check the order of hooks before the training.
        self.writes_epoch_data = tuple(f"{var_prefix}{name}" for name in names)

    def _get_metrics(self, gt: list[object], predicted: list[object]) -> dict[str, object]:
        true, guessed = (np.asarray(values).astype(np.int64).ravel() for values in (gt, predicted))
        matrix = confusion_matrix(true, guessed)
        found: dict[str, object] = {"accuracy": accuracy(matrix)}
        if self._f1_average is None:
            # Like scikit-learn, which leaves out classes that are neither true nor predicted.
            occurs = matrix.sum(0) + matrix.sum(1) > 0
            found |= {name: scores[occurs] for name, scores in class_scores(matrix).items()}
        else:
            found |= average_scores(matrix, self._f1_average)
        return {f"{self._var_prefix}{name}": found[name] for name in self._names}

    # A method of emloop's class, which subclasses call and override.
    def _save_metrics(self, epoch_data: EpochData) -> None:
        for stream, data in epoch_data.items():
            values = self._accumulator[stream]
            metrics = self._get_metrics(values[self._gt_variable], values[self._predicted_variable])
            for name, value in metrics.items():
                if name in data:
                    raise ValueError(
                        f"'{name}' of the stream '{stream}' is computed twice: set a var_prefix."
                    )
                data[name] = value

    def after_epoch(self, epoch_data: EpochData, **kwargs: object) -> None:
        self._save_metrics(epoch_data)
        super().after_epoch(epoch_data=epoch_data, **kwargs)
