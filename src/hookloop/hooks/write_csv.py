"""`WriteCSV`: the run's numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks.write_to import WriteTo
from hookloop.runs.files import make_folder
from hookloop.runs.layout import RunDir
from hookloop.writers.base import Writer
from hookloop.writers.csv import Csv

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteCSV(WriteTo):
    """Write a CSV file: a row per epoch with everything known about it, or a row per interval.

    By epochs, a row has the means of the training, the newest validation of that epoch and the
    learning rate. By iterations or time, there is a row per interval, validation and test. A metric
    that turns up later gets a column; a resumed run drops the rows that it makes once more.

    Args:
        file: Its name in the run directory, or a path.
        every: ``"1 epoch"``, or an interval in iterations or time.
        metrics: Names or patterns of the columns; all when not given.
        delimiter: Between two fields.
        missing: What stands for a metric that a row does not have.

    Example:
        >>> str(WriteCSV(every="5 epochs", metrics=["val/*"]).every)
        '5 epochs'
    """

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
            schedule = Every.parse(every)
        except ValueError as error:
            raise HookError(f"WriteCSV: {error}") from error
        self._by_epoch = schedule.unit == "epochs"
        self._set_up(50 if self._by_epoch else schedule, metrics)
        self.every = schedule
        self.file = file
        self.delimiter = delimiter
        self.missing = missing
        self._validated: dict[str, float] = {}
        self._written_at = -1
        self._remade: int | None = None

    def open(self, run: Run) -> Writer:
        path = run.dir / self.file
        make_folder(path.parent, run.dir)
        writer = Csv(path, self.delimiter, self.missing)
        if self._remade is not None:
            writer.drop_after(self._remade)
            self._remade = None
        return writer

    def before_train(self, run: Run) -> None:
        path = run.dir / self.file
        begins = run.progress.iter == 0
        if run.world.is_main and begins and path.exists() and not _is_own(path, run):
            raise HookError(
                f"WriteCSV: '{path}' holds the rows of another run: choose another file, or resume "
                "that run."
            )
        done = run.progress
        # The row of an epoch that the checkpoint had not closed is going to be written again.
        again = self._by_epoch and done.stage != "between"
        self._remade = done.iter - 1 if again or begins else done.iter
        self._written_at = done.iter
        super().before_train(run)

    def after_train_iter(self, run: Run) -> None:
        if not self._by_epoch:
            super().after_train_iter(run)

    def after_train_epoch(self, run: Run) -> None:
        """An epoch's row is written when its validation is done."""

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        if self._by_epoch and run.outcome.status == "running" and run.progress.iter:
            self._validated = {f"val/{name}": v for name, v in run.metrics.stream("val").items()}
        else:
            super().after_val_epoch(run, metrics)

    def after_epoch(self, run: Run) -> None:
        if self._by_epoch:
            self._write_row(run)

    def after_train(self, run: Run) -> None:
        # A run that ends inside of an epoch still has something to say about it.
        if self._by_epoch and self._written_at != run.progress.iter:
            self._write_row(run)

    def _write_row(self, run: Run) -> None:
        self._written_at = run.progress.iter
        if self._writer is not None:
            values = {f"train/{name}": v for name, v in run.metrics.stream("train").items()}
            self._write(run, "train", "epoch", values | self._validated)
        self._validated = {}


def _is_own(path: Path, run: Run) -> bool:
    """Tell whether a file is of this very run, which died before its first checkpoint."""
    return path.is_relative_to(run.dir) and RunDir(run.dir).holds_run()
