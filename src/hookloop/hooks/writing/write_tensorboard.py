"""`WriteTensorBoard`: the run in TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.data.batch import inputs_in
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks.writing._writing import Writing
from hookloop.runs.files import make_folder
from hookloop.writers.base import Writer, require
from hookloop.writers.records import Graph, Histogram
from hookloop.writers.skip_written import SkipWritten
from hookloop.writers.tensorboard import TensorBoard

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class WriteTensorBoard(Writing):
    """Write TensorBoard events: numbers, learning rates, images, text, hyper-parameters.

    A resumed run hides the events after the iteration from which it continues.

    Args:
        directory: Name in the run directory, or a path, for ``tensorboard --logdir``.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.
        histograms: Interval of the histograms of all parameters: in epochs, or in iterations as a
            multiple of ``every``; none by default.
        gradients: Whether to write histograms of the gradients too.
        graph: Whether to write the graph of the model, drawn with the first batch.

    Example:
        >>> str(WriteTensorBoard(histograms="2 epochs", gradients=True).histograms)
        '2 epochs'
    """

    sends = False  # Its files are in the directory of the run.
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
        self.histograms = None if histograms is None else self._parse_histograms(histograms)
        self.gradients = gradients
        self.graph = graph
        self._is_graph_written = False
        self.draws_random_numbers = (
            graph  # Drawing the graph runs the model, which may use random numbers.
        )
        if graph or self.histograms is not None:
            self._write_extras = self._write_graph_and_histograms

    def open(self, run: Run) -> Writer:
        directory = make_folder(run.dir / self.directory, run.dir)
        # Only a training repeats steps that an earlier part of the run has written.
        if run.phase != "train" or not any(directory.glob("*tfevents*")):
            return TensorBoard(directory)
        # Events of the checkpoint's own iteration are not hidden, so they must not be repeated.
        return SkipWritten(TensorBoard(directory, purge_step=run.progress.iter + 1))

    def state_dict(self) -> dict[str, object]:
        # Events from before a checkpoint are never written again, so none may be lost.
        if self._writer is not None:
            self._writer.flush()
        return {}

    def _write_graph_and_histograms(self, run: Run, unit: str) -> None:
        self._write_graph(run)
        self._write_histograms(run, unit)

    def _write_graph(self, run: Run) -> None:
        if self._writer is None or not self.graph or self._is_graph_written:
            return
        self._is_graph_written = True
        inputs = inputs_in(run.batch, has_loss=run._internals.loss_function is not None)
        # In this thread, because the model must not change while it is drawn.
        self._writer.write_now([Graph(run.model, inputs)])

    def _write_histograms(self, run: Run, unit: str) -> None:
        interval = self.histograms
        if self._writer is None or interval is None or interval.unit != unit:
            return
        if not interval.due(run.progress):
            return
        step = run.progress.iter
        for name, parameter in run.model.named_parameters():
            path = name.replace(".", "/")
            records = [Histogram(f"parameters/{path}", parameter, step)]  # type: ignore[arg-type]
            if self.gradients and parameter.grad is not None:
                records.append(Histogram(f"gradients/{path}", parameter.grad, step))  # type: ignore[arg-type]
            self._writer.write(records)

    def _parse_histograms(self, histograms: Every | int | str) -> Every:
        try:
            wanted = Every.parse(histograms)
        except ValueError as error:
            raise HookError(f"WriteTensorBoard: histograms: {error}") from error
        every = cast("Every", self.every)
        # It is checked when the hook is called, which is at ``every`` only.
        fits = every.unit == "iters" and wanted.count % every.count == 0
        if wanted.unit not in ("iters", "epochs") or (wanted.unit == "iters" and not fits):
            raise HookError(
                f"WriteTensorBoard: histograms='{wanted}' must be in epochs, or in iterations as "
                f"a multiple of every='{every}'."
            )
        return wanted
