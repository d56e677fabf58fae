"""`JsonLines`: numbers as lines of JSON."""

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
    """Appends one JSON object per record; its line is in the file when `write` returns.

    While the disk is full, lines wait in memory and are written with the next ones. A file that is
    deleted during the run is restored with all of its lines.

    Args:
        path: The file; created if it is missing, continued otherwise.
    """

    name = "jsonl"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_bytes().count(b"\n") if path.is_file() else 0
        # Unbuffered: a line is lost only if the machine fails, not if the process is killed.
        self._file = open_to_append(path, buffering=0)
        self._unwritten = b""
        self._is_failing = False

    def write(self, records: Iterable[Record]) -> None:
        """Append the numbers among the records."""
        for record in records:
            if isinstance(record, Scalars):
                self._unwritten += f"{to_json(_line(record))}\n".encode()
        try:
            self._append()
        except OSError as error:
            if not self._is_failing:  # Warn once, however long the problem lasts.
                _log.warning(
                    "'%s' cannot be written: %s. The next numbers will try again.",
                    self.path,
                    error,
                )
            self._is_failing = True

    def close(self) -> None:
        """Close the file; raise if lines are still not written."""
        try:
            self._append()
        finally:
            self._file.close()

    def _append(self) -> None:
        # Otherwise the lines would go to a file that is no longer at this path.
        if has_left(self._file, self.path):
            self._reopen()
        while self._unwritten:
            # A disk that fills up takes only a part of the bytes.
            done = self._file.write(self._unwritten)
            self.lines += self._unwritten[:done].count(b"\n")
            self._unwritten = self._unwritten[done:]
        self._is_failing = False

    def _reopen(self) -> None:
        """Create the file again after it was deleted or moved."""
        # POSIX keeps the content of a deleted file as long as it is open.
        old = self._file
        # Another file that is at this path now is continued, not overwritten.
        lines = (
            b"" if self.path.exists() else os.pread(old.fileno(), os.fstat(old.fileno()).st_size, 0)
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open_to_append(self.path, buffering=0)
        old.close()
        _log.warning("'%s' was deleted or moved during the run: it is created again.", self.path)
        self._unwritten = lines + self._unwritten
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
    """Remove the records that a resumed run will write again.

    Args:
        path: The file.
        iteration: The completed iterations of the checkpoint.
        validated: Whether the checkpoint includes the validation after the last of them.
    """
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # Half a line: the run was killed while it was writing.
            continue
        again = record.get("iter", 0) == iteration and record.get("phase") == "val"
        if line.endswith("\n") and record.get("iter", 0) <= iteration and (validated or not again):
            kept.append(line)
    write_text(path, "".join(kept))


def keep_first(path: Path, count: int) -> None:
    """Remove all but the first lines, which were there when the checkpoint was saved.

    Lines that a later test of the run added stay: a resumed training does not repeat the test.
    """
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        later = [line for line in lines[count:] if '"phase": "test"' in line and line[-1] == "\n"]
        write_text(path, "".join([*lines[:count], *later]))
