"""`SaveConfusionMatrix`: draw the confusion matrix of each stream and epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hookloop.dialects import confusion_matrix, drafted, require
from hookloop.writers import draw_figure
from hookloop_dialects.emloop.hooks.accumulate_variables import AccumulateVariables
from hookloop_dialects.emloop.types import EpochData

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


class SaveConfusionMatrix(AccumulateVariables):
    """Draw the confusion matrix of each stream after each epoch.

    Args:
        output_dir: Directory of ``confusion_matrix_epoch_<id>_<stream>.png``.
        dataset: May have methods that return the classes, see below.
        labels_name: The variable with the true classes.
        predictions_name: The variable with the predicted classes.
        classes_names: Names of the classes.
        figsize: Width and height in inches.
        figure_action: ``save`` writes the file, ``store`` puts the picture into the epoch's data as
            ``confusion_heatmap``.
        num_classes_method_name: Method of the data set that returns the number of classes.
        classes_names_method_name: Method of the data set that returns their names.
        mask_name: A variable that is true for the examples that count.
        normalize: Whether colours show shares of the true class; otherwise they show counts.
        cmap: One of matplotlib's colour maps.
        kwargs: See `AbstractHook`.
    """

    FIGURE_ACTIONS = ("save", "store")

    def __init__(  # noqa: PLR0913, PLR0917 - emloop's own parameters
        self,
        output_dir: str,
        dataset: object,
        labels_name: str = "labels",
        predictions_name: str = "predictions",
        classes_names: Sequence[str] | None = None,
        figsize: tuple[int, int] | None = None,
        figure_action: str = "save",
        num_classes_method_name: str = "num_classes",
        classes_names_method_name: str = "classes_names",
        mask_name: str | None = None,
        normalize: bool = True,
        cmap: str = "Blues",
        **kwargs: object,
    ) -> None:
        require("matplotlib", extra="plots", who="SaveConfusionMatrix")
        if figure_action not in self.FIGURE_ACTIONS:
            raise ValueError(f"figure_action='{figure_action}': write save or store.")
        names = [labels_name, predictions_name, *([mask_name] if mask_name else [])]
        super().__init__(variables=names, **kwargs)
        self._output_dir = Path(output_dir)
        self._dataset = dataset
        self._labels_name = labels_name
        self._predictions_name = predictions_name
        self._mask_name = mask_name
        self._figsize = figsize
        self.writes_epoch_data = ("confusion_heatmap",) if figure_action == "store" else ()
        self._figure_action = figure_action
        self._normalize = normalize
        self._cmap = cmap
        self._classes_names = classes_names or _ask(dataset, classes_names_method_name)
        # If neither is known, the matrix has the classes that occur.
        count = None if self._classes_names is None else len(self._classes_names)
        self._num_classes = count or _ask(dataset, num_classes_method_name)

    def after_epoch(self, epoch_id: int, epoch_data: EpochData) -> None:
        for stream, values in self._accumulator.items():
            true, predicted = (
                np.asarray(values[name]).astype(np.int64)
                for name in (self._labels_name, self._predictions_name)
            )
            if self._mask_name is not None:
                mask = np.asarray(values[self._mask_name]).astype(bool)
                true, predicted = true[mask], predicted[mask]
            figure = self._draw(confusion_matrix(true, predicted, self._num_classes))
            if self._figure_action == "store":
                epoch_data[stream]["confusion_heatmap"] = draw_figure(figure)
            else:
                name = f"confusion_matrix_epoch_{epoch_id}_{stream}.png"
                with drafted(self._output_dir / name) as draft:
                    figure.savefig(draft)
        super().after_epoch()

    def _draw(self, counts: NDArray[np.int64]) -> Figure:
        # Not through pyplot, which keeps every figure open and may start a window system.
        from matplotlib.figure import Figure

        # A class without examples has a row of zeros.
        shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        shown = shares if self._normalize else counts
        figure = Figure(figsize=self._figsize, layout="constrained")
        axes = figure.subplots()
        figure.colorbar(axes.imshow(shown, interpolation="nearest", cmap=self._cmap))
        axes.set(title="Predicted", ylabel="Expected")
        axes.tick_params(labeltop=True, labelbottom=False, top=True, bottom=False)
        if self._classes_names is not None:
            ticks = range(len(self._classes_names))
            axes.set_xticks(ticks, self._classes_names, rotation=90)
            axes.set_yticks(ticks, self._classes_names)
        for (row, column), value in np.ndenumerate(shown):
            color = "white" if value > shown.max() / 2 else "black"  # Readable on a dark cell.
            text = f"{shares[row, column]:.2f} / {counts[row, column]}"
            axes.text(column, row, text, size=8, ha="center", color=color)
        return figure


def _ask(dataset: object, method: str) -> Any:  # noqa: ANN401 - the data set's own
    asked = getattr(dataset, method, None)
    return asked() if callable(asked) else None
