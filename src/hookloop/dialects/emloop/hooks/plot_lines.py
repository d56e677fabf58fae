"""`PlotLines`: variables of single examples as curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hookloop.dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop.dialects.emloop.hooks.accumulate_variables import variable
from hookloop.dialects.emloop.types import Batch
from hookloop.runs.files import drafted, make_folder
from hookloop.writers.base import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PlotLines(AbstractHook):
    """Draw each example's variables into one picture.

    The files are ``visual/epoch_<id>/<stream>/<example>_batch_<n>_plot-<a-vs-b>.png``.

    Args:
        output_dir: Where the directory of the pictures is made.
        variables: What to draw.
        streams: Of which streams; of all when not given.
        id_variable: The variable that names an example.
        pad_mask_variable: A variable that is true where a value counts.
        out_format: The kind of picture.
        ymin: Lower end of the scale.
        ymax: Upper end.
        example_count: How many examples of a batch.
        batch_count: How many batches of an epoch.
        root_dir: Name of the directory.
        kwargs: See `AbstractHook`.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - emloop's own parameters
        self,
        output_dir: str,
        variables: Sequence[str],
        streams: Sequence[str] | None = None,
        id_variable: str = "ids",
        pad_mask_variable: str | None = None,
        out_format: str = "png",
        ymin: float | None = None,
        ymax: float | None = None,
        example_count: int | None = None,
        batch_count: int | None = None,
        root_dir: str = "visual",
        **kwargs: object,
    ) -> None:
        require("matplotlib", extra="plots", who="PlotLines")
        super().__init__(**kwargs)
        assert variables, "PlotLines needs at least one variable"
        self._root = Path(output_dir) / root_dir
        self._variables = variables
        self._streams = streams
        self._id_variable = id_variable
        self._pad_mask_variable = pad_mask_variable
        self._out_format = out_format
        self._limits = (ymin, ymax)
        self._example_count = example_count
        self._batch_count = batch_count
        self._epoch = 0
        self._batch_done: Counter[str] = Counter()

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        if self._streams is not None and stream_name not in self._streams:
            return
        self._batch_done[stream_name] += 1
        number = self._batch_done[stream_name]
        if self._batch_count and number > self._batch_count:
            return
        names = variable(batch_data, self._id_variable, stream_name)
        folder = self._root / f"epoch_{self._epoch}" / stream_name
        make_folder(folder, self._root.parent)
        ending = f"batch_{number}_plot-{'-vs-'.join(self._variables)}.{self._out_format}"
        for index, name in enumerate(names[: self._example_count or None]):
            figure = self._draw(index, stream_name, batch_data)
            with drafted(folder / f"{str(name).replace('/', '___')}_{ending}") as draft:
                figure.savefig(draft)

    def after_epoch(self, epoch_id: int, **_: object) -> None:
        self._epoch = epoch_id + 1
        self._batch_done.clear()

    def _draw(self, index: int, stream: str, batch_data: Batch) -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = figure.subplots()
        for name in self._variables:
            values = np.asarray(variable(batch_data, name, stream)[index])
            if self._pad_mask_variable is not None:
                mask = variable(batch_data, self._pad_mask_variable, stream)[index]
                values = values[np.asarray(mask, dtype=bool)]
            axes.plot(values, label=name)
        low, high = self._limits
        axes.set_ylim(bottom=low, top=high)
        axes.legend()
        return figure
