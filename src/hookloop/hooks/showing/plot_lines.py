"""`PlotLines`: draw sequences of single samples as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, MetricError, nearest
from hookloop.hooks.metrics.accumulate_variables import (
    check_streams,
    find_variable,
    is_selected,
    list_variables,
    stream_of,
    to_array,
)
from hookloop.hooks.showing._figures import (
    file_name,
    moment_label,
    new_figure,
    require_plots,
    save_picture,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hookloop.engine.run import Run


class PlotLines(Hook):
    """Draw variables of single samples as curves over the position, for each evaluation.

    Files are ``plots/epoch_<n>/<stream>/<id>_<variables>.png``, with ``iter_<n>`` within an epoch;
    they also go to the writers. On many ranks the samples are those of the first rank.

    Args:
        variables: Names of sequences, drawn into one picture: a prediction and its target.
        examples: How many samples to draw of each stream.
        id_variable: The variable that identifies a sample; by default its number.
        pad_mask: A variable that is true where a sequence has an entry.
        limits: Lowest and highest value of the vertical axis.
        streams: Where: ``"val"``, ``"test"`` or names of single streams.

    Example:
        >>> PlotLines(["output", "targets"], examples=4).examples
        4
    """

    ranks = "first"
    on_error = "disable"  # A picture that cannot be drawn must not end a training.
    draws_random_numbers = False

    def __init__(
        self,
        variables: Sequence[str] = ("output", "targets"),
        examples: int = 10,
        *,
        id_variable: str | None = None,
        pad_mask: str | None = None,
        limits: tuple[float, float] | None = None,
        streams: Sequence[str] = ("val", "test"),
    ) -> None:
        if isinstance(variables, str) or not variables:
            raise HookError("PlotLines: variables is a list of names.")
        if examples < 1:
            raise HookError(f"PlotLines: examples must be at least 1, not {examples}.")
        require_plots("PlotLines")
        self.variables = tuple(variables)
        self.examples = examples
        self.id_variable = id_variable
        self.pad_mask = pad_mask
        self.limits = limits
        self.streams = tuple(streams)
        self._drawn: dict[str, int] = {}
        self._passed: dict[str, int] = {}  # Samples of earlier batches, over all ranks.

    def before_train(self, run: Run) -> None:
        check_streams(self, run, self.streams)

    def before_val_epoch(self, run: Run) -> None:
        self._drawn, self._passed = {}, {}

    def after_val_iter(self, run: Run) -> None:
        self._draw(run)

    def before_test_epoch(self, run: Run) -> None:
        self._drawn, self._passed = {}, {}

    def after_test_iter(self, run: Run) -> None:
        self._draw(run)

    def _draw(self, run: Run) -> None:
        if not is_selected(run, self.streams):
            return
        # Counted per stream: several streams take turns within one validation.
        drawn = self._drawn.get(stream_of(run), 0)
        if drawn >= self.examples:
            return
        curves = {name: self._variable(run, name) for name in self.variables}
        count = min(self.examples - drawn, *(len(curve) for curve in curves.values()))
        mask = self._variable(run, self.pad_mask) if self.pad_mask else None
        ids = self._variable(run, self.id_variable) if self.id_variable else None
        passed = self._passed.get(stream_of(run), 0)
        total = run.place.total if run.place is not None else None
        self._passed[stream_of(run)] = passed + (count if total is None else total)
        for index in range(count):
            identity = ids[index] if ids is not None else passed + index
            kept = mask[index].astype(bool) if mask is not None else slice(None)
            picked = {name: np.atleast_1d(c[index].squeeze())[kept] for name, c in curves.items()}
            self._plot(run, identity, picked)
        self._drawn[stream_of(run)] = drawn + count

    def _plot(self, run: Run, identity: object, curves: Mapping[str, NDArray[np.generic]]) -> None:
        stream = stream_of(run)
        figure = new_figure(7, 4)
        axes = figure.subplots()
        for name, values in curves.items():
            # Markers keep a sequence of one entry visible and would clutter a long one.
            axes.plot(values, label=name, marker="." if len(values) < 50 else None)
        axes.set(
            title=f"{stream}, {identity}, {moment_label(run)}", xlabel="index", ylim=self.limits
        )
        axes.legend()
        words = file_name(identity, *self.variables)
        file = run.dir / "plots" / file_name(moment_label(run)) / stream / f"{words}.png"
        save_picture(run, f"{stream}/lines/{identity}", figure, file)

    def _variable(self, run: Run, name: str) -> NDArray[np.generic]:
        found = find_variable(run, name)
        if found is None or (isinstance(found, Tensor) and found.ndim == 0):
            existing = list_variables(run)
            raise MetricError(
                f"{self.name}: there is no sequence '{name}' in the batch or the output of "
                f"'{run.stream}'.{nearest(name, existing)} There are: {', '.join(existing)}."
            )
        return to_array(found)
