"""`WriteTensorBoard`: the run in TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.data.batch import is_pair
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks._writing import Writing
from hookloop.runs.files import make_folder
from hookloop.writers.base import Writer, require
from hookloop.writers.once import Once
from hookloop.writers.records import Graph, Histogram
from hookloop.writers.tensorboard import TensorBoard

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteTensorBoard(Writing):
    """Write TensorBoard events: numbers, learning rates, pictures, text, hyper-parameters.

    A resumed run hides the events after the iteration with which it continues.

    Args:
        directory: Its name in the run directory, or a path, for ``tensorboard --logdir``.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.
        histograms: When to write the distribution of every parameter: in epochs, or in iterations
            at a multiple of ``every``; never when not given.
        gradients: Whether that includes the gradients.
        graph: Whether to write the graph of the model, drawn with the first batch.

    Example:
        >>> str(WriteTensorBoard(histograms="2 epochs", gradients=True).histograms)
        '2 epochs'
    """

    draws_random_numbers = False

    def __init__(
        self,
        directory: str | Path = "tensorboard",
        every: Every | int | str = 50,
        *,
        metrics: Sequence[str] | None = None,
        histograms: Every | int | str | None = None,
        gradients: bool = False,
        graph: bool = False,
    ) -> None:
        require("tensorboard", extra="tensorboard", who="WriteTensorBoard")
        super().__init__(every, metrics)
        self.directory = directory
        self.histograms = None if histograms is None else self._check(histograms)
        self.gradients = gradients
        self.graph = graph
        self._is_drawn = False
        self.draws_random_numbers = graph  # Drawing it runs the model, which may draw.
        if graph or self.histograms is not None:
            self._write_more = self._write_graph_and_histograms

    def open(self, run: Run) -> Writer:
        directory = make_folder(run.dir / self.directory, run.dir)
        # Only a training makes steps again that an earlier part of the run has written.
        if run.phase != "train" or not any(directory.glob("*tfevents*")):
            return TensorBoard(directory)
        return Once(TensorBoard(directory, purge_step=run.progress.iter + 1))

    def state_dict(self) -> dict[str, object]:
        if self._writer is not None:  # Else a kill could lose events that nobody writes again.
            self._writer.flush()
        return {}

    def _write_graph_and_histograms(self, run: Run, unit: str) -> None:
        self._draw(run)
        self._write_histograms(run, unit)

    def _draw(self, run: Run) -> None:
        if self._writer is None or not self.graph or self._is_drawn:
            return
        self._is_drawn = True
        batch = run.batch
        inputs = cast("Sequence[object]", batch)[0] if is_pair(batch) else batch
        # In this thread: the model must not change while it is drawn.
        self._writer.write_now([Graph(run.model, inputs)])

    def _write_histograms(self, run: Run, unit: str) -> None:
        due = self.histograms
        if self._writer is None or due is None or due.unit != unit or not due.due(run.progress):
            return
        step = run.progress.iter
        for name, parameter in run.model.named_parameters():
            path = name.replace(".", "/")
            records = [Histogram(f"parameters/{path}", parameter, step)]  # type: ignore[arg-type]
            if self.gradients and parameter.grad is not None:
                records.append(Histogram(f"gradients/{path}", parameter.grad, step))  # type: ignore[arg-type]
            self._writer.write(records)

    def _check(self, histograms: Every | int | str) -> Every:
        try:
            wanted = Every.parse(histograms)
        except ValueError as error:
            raise HookError(f"WriteTensorBoard: histograms: {error}") from error
        every = cast("Every", self.every)
        fits = every.unit == "iters" and wanted.count % every.count == 0
        if wanted.unit == "seconds" or (wanted.unit == "iters" and not fits):
            raise HookError(
                f"WriteTensorBoard: histograms='{wanted}' must be epochs, or iterations at a "
                f"multiple of every='{every}'."
            )
        return wanted
