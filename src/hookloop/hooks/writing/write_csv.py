"""`WriteCSV`: the numbers of a run as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks.writing._writing import Span, Writing, learning_rates
from hookloop.metrics.store import EPOCH_STREAM, stream_of
from hookloop.runs.files import make_folder
from hookloop.runs.layout import RunDir
from hookloop.writers.base import Writer
from hookloop.writers.csv import Csv
from hookloop.writers.records import Scalars

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class WriteCSV(Writing):
    """Write a CSV file: a row per epoch with all of its numbers, or a row per interval.

    By epochs, a row has the means of the training over that epoch (under ``train/``), the newest
    validation, the numbers of hooks and the learning rate. By iterations or time, there is a row
    per interval, epoch, validation and test. A metric that appears later gets a new column; a
    resumed run drops the rows that it repeats.

    Args:
        file: Name of the file in the run directory, or a path.
        every: ``"1 epoch"``, or an interval in iterations or time.
        metrics: Names or patterns of the columns; all by default.
        delimiter: The character between two fields.
        missing: The text for a metric that a row does not have.

    Example:
        >>> str(WriteCSV(every="5 epochs", metrics=["val/*"]).every)
        '5 epochs'
    """

    sends = False  # Its files are in the directory of the run.
    draws_random_numbers = False

    def __init__(
        self,
        file: str | Path = "metrics.csv",
        every: Every | int | str = "1 epoch",
        *,
        metrics: Sequence[str] | None = None,
        delimiter: str = ",",
        missing: str = "",
    ) -> None:
        if len(delimiter) != 1:
            raise HookError(f"WriteCSV: delimiter must be one character, not {delimiter!r}.")
        try:
            interval = Every.parse(every)
        except ValueError as error:
            raise HookError(f"WriteCSV: {error}") from error
        self._by_epoch = interval.unit == "epochs"
        # The base accepts no interval in epochs, which would limit all of its other writes too.
        super().__init__(50 if self._by_epoch else interval, metrics)
        self.every = interval
        self.file = file
        self.delimiter = delimiter
        self.missing = missing
        self._row: dict[str, float] = {}
        self._written_at = -1
        self._file: Csv | None = None
        self._rows_at_checkpoint: int | None = None  # How many rows the checkpoint had.
        self._rows_to_keep: int | None = None

    def open(self, run: Run) -> Writer:
        path = run.dir / self.file
        make_folder(path.parent, run.dir)
        self._file = Csv(path, self.delimiter, self.missing)
        if self._rows_to_keep is not None:
            self._file.keep_first(self._rows_to_keep)
            self._rows_to_keep = None
        return self._file

    def state_dict(self) -> dict[str, object]:
        # Rows from before a checkpoint are never written again, so none may be lost.
        if self._writer is not None:
            self._writer.flush()
        if self._writer is None or self._file is None:
            return {}
        return {"rows": self._file.rows, "row": dict(self._row)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._rows_at_checkpoint = cast("int | None", state.get("rows"))
        self._row = dict(cast("Mapping[str, float]", state.get("row", {})))

    def before_train(self, run: Run) -> None:
        path = run.dir / self.file
        is_start = run.progress.iter == 0
        if is_start and path.exists() and not _is_own(path, run):
            raise HookError(
                f"WriteCSV: '{path}' holds the rows of another run: choose another file, or resume "
                "that run."
            )
        # No row, if the run was killed before its first checkpoint and starts again.
        self._rows_to_keep = (
            0 if is_start or run._internals.is_from_other else self._rows_at_checkpoint
        )
        self._rows_at_checkpoint = None
        self._written_at = run.progress.iter  # What comes before is in the rows of the checkpoint.
        super().before_train(run)

    def after_train_iter(self, run: Run) -> None:
        if not self._by_epoch:
            super().after_train_iter(run)

    def after_epoch_profile(self, run: Run) -> None:
        if self._by_epoch:
            self._write_row(run, has_trained=True)
        else:
            super().after_epoch_profile(run)

    def _write(self, run: Run, span: Span, skip: Callable[[str], bool] | None = None) -> None:
        """By epochs, collect the new values for the row of the epoch."""
        if not self._by_epoch or self._phase != "train" or self._writer is None:
            super()._write(run, span, skip)
            return
        now = (run.progress.iter, run.progress.epoch)
        new = run.metrics.read_new(self.name, now, skip)
        self._row |= {name: value for values in new.values() for name, value in values.items()}

    def _write_rest(self, run: Run) -> None:
        if self._by_epoch and self._phase == "train" and self._writer is not None:
            self._write(run, "epoch", lambda name: stream_of(name) == "train")
            # A run that ends within an epoch still gets a row for it.
            is_inside = self._written_at != run.progress.iter
            if self._row or is_inside:
                self._write_row(run, has_trained=is_inside)
            return
        super()._write_rest(run)

    def _write_row(self, run: Run, *, has_trained: bool) -> None:
        """Write the row of an epoch, with the means of the training over the epoch."""
        self._write(run, "epoch")
        row, self._row = self._row, {}
        if self._writer is None:
            return
        progress = run.progress
        if has_trained:
            row |= run.metrics.stream("train")
            row |= learning_rates(run)
        self._written_at = progress.iter
        if not self._patterns:  # The columns of train/ have the same numbers.
            row = {name: value for name, value in row.items() if stream_of(name) != EPOCH_STREAM}
        if chosen := self._choose(row):
            self._writer.write([Scalars(chosen, progress.iter, progress.epoch, "train", "epoch")])


def _is_own(path: Path, run: Run) -> bool:
    """Return whether a file belongs to this run, which was killed before its first checkpoint."""
    return path.is_relative_to(run.dir) and RunDir(run.dir).holds_run()
