"""Records as lines of JSON."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from hookloop.runs.files import has_left, open_to_append, write_text
from hookloop.runs.records import to_json
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars

_log = logging.getLogger("hookloop")


class JsonLines(Writer):
    """Appends one JSON object per moment; its line is in the file when `write` returns.

    While the disk is full, lines wait in memory and are written with the next ones. A file that
    somebody deletes comes back with all of its lines.

    Args:
        path: The file; made when it is missing, continued when it is there.
    """

    name = "jsonl"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_bytes().count(b"\n") if path.is_file() else 0
        self._file = open_to_append(path, buffering=0)
        self._waiting = b""
        self._is_late = False

    def write(self, records: Iterable[Record]) -> None:
        """Append the numbers among the records."""
        for record in records:
            if isinstance(record, Scalars):
                self._waiting += f"{to_json(_line(record))}\n".encode()
        try:
            self._append()
        except OSError as error:
            if not self._is_late:  # Once, however long the fault lasts.
                _log.warning(
                    "'%s' cannot be written: %s. It is tried again with the next numbers.",
                    self.path,
                    error,
                )
            self._is_late = True

    def close(self) -> None:
        """Close the file; raises if something could not be written to the end."""
        try:
            self._append()
        finally:
            self._file.close()

    def _append(self) -> None:
        if has_left(self._file, self.path):
            self._come_back()
        while self._waiting:
            done = self._file.write(self._waiting)
            self.lines += self._waiting[:done].count(b"\n")
            self._waiting = self._waiting[done:]
        self._is_late = False

    def _come_back(self) -> None:
        """Make the file again after it was deleted or moved; what is open can still be read."""
        old = self._file
        lines = (
            b"" if self.path.exists() else os.pread(old.fileno(), os.fstat(old.fileno()).st_size, 0)
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open_to_append(self.path, buffering=0)
        old.close()
        _log.warning(
            "'%s' was deleted or moved while the run writes it: it is made again.", self.path
        )
        self._waiting = lines + self._waiting
        self.lines = self.path.read_bytes().count(b"\n")


def _line(record: Scalars) -> dict[str, object]:
    return {
        "time": record.time,
        "phase": record.phase,
        "span": record.span,
        "iter": record.step,
        "epoch": record.epoch,
        **record.values,
    }


def drop_after(path: Path, iteration: int, *, validated: bool = True) -> None:
    """Remove the records that a resumed run is going to make once more.

    Args:
        path: The file.
        iteration: Iterations that the checkpoint had completed.
        validated: Whether it had the validation after the last of them as well.
    """
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # Half a line: the run was killed while it wrote.
            continue
        again = record.get("iter", 0) == iteration and record.get("phase") == "val"
        if line.endswith("\n") and record.get("iter", 0) <= iteration and (validated or not again):
            kept.append(line)
    write_text(path, "".join(kept))


def keep_first(path: Path, count: int) -> None:
    """Remove all but the first lines, which are those that a checkpoint knew of.

    What a test of the run added later stays: it is not made again.
    """
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        later = [line for line in lines[count:] if '"phase": "test"' in line and line[-1] == "\n"]
        write_text(path, "".join([*lines[:count], *later]))
