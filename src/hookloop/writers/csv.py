"""Records as rows of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from hookloop.runs.files import open_to_append, reject_link, write_text
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars

PLACE = ("time", "phase", "iter", "epoch")
"""The columns that say when a row was measured; the metrics follow them."""


class Csv(Writer):
    """Appends a row per moment, under one header; what needs quotes gets them.

    A metric that turns up later gets a column of its own: the file is written anew, with the new
    header and empty fields in the rows before. A file that is there already is continued.

    Args:
        path: The file.
        delimiter: Between two fields.
        missing: What stands for a metric that a row does not have.
    """

    name = "csv"

    def __init__(self, path: Path, delimiter: str = ",", missing: str = "") -> None:
        self.path = path
        self.delimiter = delimiter
        self.missing = missing
        reject_link(path)
        rows = self.read()
        self.rows = len(rows)
        self._columns = list(rows[0]) if rows else [*PLACE]
        if rows:
            self._replace(rows)  # Mends a last row that was cut off when the run was killed.
        self._file = self._open()

    def read(self) -> list[dict[str, str]]:
        """Return the whole rows that the file holds; empty when it has none."""
        if not self.path.is_file():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(whole, newline=""), delimiter=self.delimiter)
        return [
            {key: value if value is not None else self.missing for key, value in row.items()}
            for row in reader
        ]

    def keep_first(self, count: int) -> None:
        """Remove all but the first rows, which are those that a checkpoint knew of.

        What a test of the run added later stays: it is not made again.
        """
        rows = self.read()
        kept = rows[:count] + [row for row in rows[count:] if row["phase"] == "test"]
        self._file.close()
        self._replace(kept)
        self.rows = len(kept)
        self._file = self._open()

    def write(self, records: Iterable[Record]) -> None:
        """Append a row for each moment among the records."""
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
            **record.values,
        }
        new = [name for name in row if name not in self._columns]
        self._file.flush()
        if new or self.path.stat().st_size == 0:
            self._columns += new
            self._file.close()
            self._replace(self.read())
            self._file = self._open()
        self._dictionary(self._file).writerow(row)
        self.rows += 1

    def _replace(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write the file anew, whole or not at all."""
        text = io.StringIO(newline="")
        writer = self._dictionary(text)
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.path, text.getvalue())

    def _open(self) -> TextIO:
        return io.TextIOWrapper(open_to_append(self.path), encoding="utf-8", newline="")

    def _dictionary(self, file: object) -> csv.DictWriter[str]:
        return csv.DictWriter(
            file,  # type: ignore[arg-type]
            self._columns,
            restval=self.missing,
            delimiter=self.delimiter,
            lineterminator="\n",
        )
