"""`Csv`: numbers as rows of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from hookloop.runs.csv_cells import read_cell, safe_cell
from hookloop.runs.files import open_to_append, reject_link, write_text
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars

FIXED_COLUMNS = ("time", "phase", "iter", "epoch")
"""The columns that show when a row was measured; the metrics follow them."""


class Csv(Writer):
    """Appends a row per record of numbers, under one header.

    A metric that appears later gets a column of its own: the file is rewritten with the new header,
    and earlier rows have an empty field there. An existing file is continued. No cell is a formula,
    see `hookloop.runs.csv_cells`.

    Args:
        path: The file.
        delimiter: The character between two fields.
        missing: The text for a metric that a row does not have.
    """

    name = "csv"

    def __init__(self, path: Path, delimiter: str = ",", missing: str = "") -> None:
        self.path = path
        self.delimiter = delimiter
        self.missing = missing
        reject_link(path)  # A run directory from elsewhere could point to any file of the user.
        rows = self.read()
        self.rows = len(rows)
        self._columns = list(rows[0]) if rows else [*FIXED_COLUMNS]
        if rows:
            self._rewrite(rows)  # Without a last row that was cut off when the run was killed.
        self._file = self._open()

    def read(self) -> list[dict[str, str]]:
        """Return the complete rows of the file; empty if there is no file."""
        if not self.path.is_file():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        # A kill can leave half a row. Text after the last line break is not a row.
        whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(whole, newline=""), delimiter=self.delimiter)
        reader.fieldnames = [read_cell(name) for name in reader.fieldnames or ()]
        return [
            {key: value if value is not None else self.missing for key, value in row.items()}
            for row in reader
        ]

    def keep_first(self, count: int) -> None:
        """Remove all but the first rows, which were there when the checkpoint was saved.

        Rows that a later test of the run added stay: a resumed training does not repeat the test.
        """
        rows = self.read()
        kept = rows[:count] + [row for row in rows[count:] if row["phase"] == "test"]
        self._file.close()
        self._rewrite(kept)
        self.rows = len(kept)
        self._file = self._open()

    def write(self, records: Iterable[Record]) -> None:
        """Append a row for each record of numbers."""
        for record in records:
            if isinstance(record, Scalars):
                self._append(record)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, record: Scalars) -> None:
        row: dict[str, object] = {
            "time": f"{record.time:.3f}",
            "phase": record.phase,
            "iter": record.step,
            "epoch": record.epoch,
            **{name: safe_cell(value) for name, value in record.values.items()},
        }
        new = [name for name in row if name not in self._columns]
        self._file.flush()  # Before the file is measured, and before it is read again.
        if new or self.path.stat().st_size == 0:
            self._columns += new
            self._file.close()
            self._rewrite(self.read())
            self._file = self._open()
        self._row_writer(self._file).writerow(row)
        self.rows += 1

    def _rewrite(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Replace the file, in one step: a kill leaves the old or the new one."""
        text = io.StringIO(newline="")
        writer = self._row_writer(text)
        writer.writerow({name: safe_cell(name) for name in self._columns})
        writer.writerows(rows)
        write_text(self.path, text.getvalue())

    def _open(self) -> TextIO:
        # newline="" leaves line breaks to the csv module, which quotes those within a field.
        return io.TextIOWrapper(open_to_append(self.path), encoding="utf-8", newline="")

    def _row_writer(self, file: object) -> csv.DictWriter[str]:
        return csv.DictWriter(
            file,  # type: ignore[arg-type]
            self._columns,
            restval=self.missing,
            delimiter=self.delimiter,
            lineterminator="\n",
        )
