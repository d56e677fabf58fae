"""`SaveConfusionMatrix`: save which classes are confused, as a picture and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.errors import HookError
from hookloop.hooks.metrics.accumulate_variables import AccumulateVariables, Part
from hookloop.hooks.metrics.classification_metrics import count_pairs, to_classes, true_classes
from hookloop.hooks.showing._figures import (
    file_name,
    moment_label,
    new_figure,
    require_plots,
    save_picture,
)
from hookloop.runs.files import write_text
from hookloop.writers.records import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from hookloop.engine.run import Run

MOST_NUMBERS = 30  # Classes up to which the cells have room for their counts.


class SaveConfusionMatrix(AccumulateVariables):
    """Save the confusion matrix of each evaluation as a PNG picture and a CSV table.

    The files are ``confusion/<stream>_epoch_<n>.png`` and ``.csv``, with ``iter_<n>`` within an
    epoch; both also go to the writers. Rows are the true classes, columns the predicted ones.
    Targets below zero do not count.

    Args:
        predictions: The variable with the predicted classes, or with scores per class.
        targets: The variable with the true classes.
        class_names: Names of the classes; by default their numbers.
        normalize: Whether colors show shares of the true class; otherwise they show counts.
        streams: Where: ``"train"``, ``"val"``, ``"test"`` or names of single streams.
        colors: One of matplotlib's color maps.

    Example:
        >>> SaveConfusionMatrix(class_names=["cat", "dog"]).streams
        ('val', 'test')
    """

    draws_random_numbers = False

    def __init__(
        self,
        predictions: str = "output",
        targets: str = "targets",
        *,
        class_names: Sequence[str] | None = None,
        normalize: bool = True,
        streams: Sequence[str] = ("val", "test"),
        colors: str = "Blues",
    ) -> None:
        require_plots("SaveConfusionMatrix")
        from matplotlib import colormaps

        if colors not in colormaps:
            raise HookError(f"SaveConfusionMatrix: matplotlib has no color map '{colors}'.")
        super().__init__([predictions, targets], streams)
        self.predictions = predictions
        self.targets = targets
        self.class_names = None if class_names is None else tuple(map(str, class_names))
        self.normalize = normalize
        self.colors = colors

    def reduce(self, name: str, value: Tensor) -> Tensor:
        # Class numbers instead of scores: an epoch of scores may not fit into memory.
        return to_classes(value) if name == self.predictions else true_classes(value)

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Part]]) -> None:
        if not run.world.is_main:
            return
        # With names the size is known, also if the last classes do not occur in this stream.
        num_classes = None if self.class_names is None else len(self.class_names)
        matrix = count_pairs(values[self.targets], values[self.predictions], num_classes)
        names = self.class_names or tuple(str(index) for index in range(len(matrix)))
        file = run.dir / "confusion" / f"{file_name(stream, moment_label(run))}.png"
        title = f"{stream}, {moment_label(run)}"
        save_picture(run, f"{stream}/confusion", self._draw(matrix, names, title), file, title)
        rows = [[name, *map(int, row)] for name, row in zip(names, matrix, strict=True)]
        table = Table(f"{stream}/confusion", ["true", *names], rows, file=file.with_suffix(".csv"))
        write_text(file.with_suffix(".csv"), table.to_csv())
        run.emit(table)

    def _draw(self, matrix: NDArray[np.int64], names: Sequence[str], title: str) -> Figure:
        size = len(matrix)
        shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)  # A class may not occur.
        shown = shares if self.normalize else matrix
        side = min(4 + 0.4 * size, 16)  # With a thousand classes a picture must stay loadable.
        figure = new_figure(side + 1, side)
        axes = figure.subplots()
        mesh = axes.imshow(shown, cmap=self.colors, vmin=0, vmax=1 if self.normalize else None)
        figure.colorbar(mesh, ax=axes, label="share of the true class" if self.normalize else None)
        axes.set(xlabel="predicted", ylabel="true", title=title)
        axes.set_xticks(range(size), names, rotation=45 if max(map(len, names)) > 3 else 0)
        axes.set_yticks(range(size), names)
        if size <= MOST_NUMBERS:
            bright = shown.max() / 2  # Above it the cell is dark, and black text unreadable.
            for row, column in np.ndindex(size, size):
                axes.text(
                    column,
                    row,
                    str(matrix[row, column]),
                    ha="center",
                    va="center",
                    color="white" if shown[row, column] > bright else "black",
                )
        return figure
