"""`PlotLines`: plot variables of single examples as curves."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hookloop.dialects import drafted, make_folder, require
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.hooks.accumulate_variables import variable
from hookloop_dialects.emloop.types import Batch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PlotLines(AbstractHook):
    """Draw each example's variables into one picture.

    The files are ``visual/epoch_<id>/<stream>/<example>_batch_<n>_plot-<a-vs-b>.png``.

    Args:
        output_dir: Parent of the directory for the pictures.
        variables: The variables to draw.
        streams: The streams; None for all.
        id_variable: The variable that identifies an example.
        pad_mask_variable: A variable that is true for values that are not padding.
        out_format: Format of the picture.
        ymin: Lower end of the y axis.
        ymax: Upper end of the y axis.
        example_count: Examples to draw per batch; None for all.
        batch_count: Batches to draw per epoch; None for all.
        root_dir: Name of the directory for the pictures.
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
        self._reset()

    # The next three are of emloop's class, and subclasses override them.

    @property
    def figure_suffix(self) -> str:
        """The end of the files' names, before the format."""
        return "-vs-".join(self._variables)

    def plot_figure(self, idx: int, batch_data: Batch) -> Figure:
        """Draw the variables of one example."""
        # Not through pyplot, which keeps every figure open and may start a window system.
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = figure.subplots()
        for name in self._variables:
            values = np.asarray(batch_data[name][idx])
            if self._pad_mask_variable is not None:
                values = values[np.asarray(batch_data[self._pad_mask_variable][idx], dtype=bool)]
            axes.plot(values, label=name)
        low, high = self._limits
        axes.set_ylim(bottom=low, top=high)
        axes.legend()
        return figure

    def _reset(self) -> None:
        self._batch_done: Counter[str] = Counter()

    def after_batch(self, stream_name: str, batch_data: Batch) -> None:
        if self._streams is not None and stream_name not in self._streams:
            return
        self._batch_done[stream_name] += 1
        number = self._batch_done[stream_name]
        if self._batch_count and number > self._batch_count:
            return
        names = variable(batch_data, self._id_variable, stream_name)
        for needed in filter(None, (*self._variables, self._pad_mask_variable)):
            variable(batch_data, needed, stream_name)  # A missing one is named with the others.
        folder = self._root / f"epoch_{self._epoch}" / stream_name
        make_folder(folder, self._root.parent)
        ending = f"batch_{number}_plot-{self.figure_suffix}.{self._out_format}"
        for index, name in enumerate(names[: self._example_count or None]):
            figure = self.plot_figure(index, batch_data)
            # An example is often identified by a path; a slash would need more directories.
            with drafted(folder / f"{str(name).replace('/', '___')}_{ending}") as draft:
                figure.savefig(draft)
            # A project's own method may use pyplot, which would keep the figure.
            if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
                pyplot.close(figure)

    def after_epoch(self, epoch_id: int, **_: object) -> None:
        self._epoch = epoch_id + 1  # after_batch is not told the epoch.
        self._reset()
