"""Follow ``metrics.jsonl`` while a run writes it: compact columns, and only what is new is read."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from hookloop.runs import LONGEST_LINE, STAMPS, opened_to_read
from hookloop_board.records import Columns, count_of, parse_lines, read_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1_000_000
"""Bytes that are read at once."""

MOST_VALUES = 30_000_000
"""How many numbers of a run are kept; the rest of a larger file is not shown."""

MOST_NAMES = 5_000
"""How many metrics of a run are kept."""

REMEMBERED = 64
"""Bytes before the end by which a file that was written again is noticed."""

_readings = count()


@dataclass
class Series:
    """The values of one metric, each with the number of its record."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    span: str = ""
    phase: str = ""


@dataclass(frozen=True)
class Points:
    """The values of one metric as arrays, in the order of writing.

    Attributes:
        iters: The iteration of each value.
        epochs: The epochs completed by then.
        times: When it was written, in seconds since 1970; NaN if unknown.
        values: The values, NaN and infinities among them.
    """

    iters: NDArray[np.float64]
    epochs: NDArray[np.float64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]

    def between(self, after: float, until: float) -> Points:
        """Return those of the iterations behind one, up to another one."""
        kept = (self.iters > after) & (self.iters <= until)
        return Points(self.iters[kept], self.epochs[kept], self.times[kept], self.values[kept])

    @classmethod
    def joined(cls, parts: Sequence[Points]) -> Points:
        """Return several as one."""
        columns = zip(*((p.iters, p.epochs, p.times, p.values) for p in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


class MetricsFile:
    """The metrics of a run; `update` reads what was added.

    Args:
        path: The file, which may be missing, torn, foreign or huge, and may be replaced.

    Attributes:
        is_behind: Whether more of the file is to be read.
        share: How much of it is read, from 0 to 1.
        reading: A number that is another one each time that the file is read from its start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self.series: dict[str, Series] = {}
        self._stamps: tuple[array[float], ...] = (array("d"), array("d"), array("d"))
        self._offset, self._inode = 0, 0
        self._before = b""
        self._is_skipping = False
        self.count = 0
        self.is_cut = False
        self.is_behind = False
        self.share = 1.0
        self.reading = next(_readings)

    def update(self, until: float = math.inf) -> bool:
        """Read what is new; return whether anything is.

        A file that was replaced or shortened, as a resume does it, is read again from its start.

        Args:
            until: When to leave the rest to the next call, by the monotonic clock: a million
                records take seconds.
        """
        with self.lock:
            try:
                with opened_to_read(self.path) as file:
                    return self._read(file, until)
            except OSError:
                had = bool(self.series)
                self._forget()
                return had

    def _read(self, file: BinaryIO, until: float) -> bool:
        status = os.fstat(file.fileno())
        begins_again = status.st_ino != self._inode or status.st_size < self._offset
        if not begins_again and self._before:
            file.seek(self._offset - len(self._before))
            begins_again = file.read(len(self._before)) != self._before
        had = bool(self.series)
        if begins_again:
            self._forget()
            self._inode = status.st_ino
        before = self.count
        file.seek(self._offset)
        self.is_behind = True
        for lines in self._whole_lines(file, status.st_size):
            if self.count >= MOST_VALUES:
                self.is_cut = True
                self.is_behind = False
                break
            if lines:
                self._add(read_columns(lines))
            if monotonic() >= until:
                self.is_behind = self._offset < status.st_size
                break
        self._remember(file)
        self.share = self._offset / status.st_size if self.is_behind else 1.0
        return self.count != before or (begins_again and had)

    def _whole_lines(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        """Yield complete lines, many at once; what is longer than a record is passed over."""
        rest = b""
        while self._offset + len(rest) < size:
            data = file.read(min(CHUNK, size - self._offset - len(rest)))
            if not data:
                break
            lines, end, rest = (rest + data).rpartition(b"\n")
            lines += end
            self._offset += len(lines)
            if self._is_skipping and lines:
                lines, self._is_skipping = lines.partition(b"\n")[2], False
            if len(rest) > LONGEST_LINE or (self._is_skipping and rest):
                self._offset += len(rest)
                rest, self._is_skipping = b"", True
            if lines or self._is_skipping:  # So that nobody waits for the end of a line, either.
                yield lines
        # The end of a file may be half a line.
        self.is_behind = False

    def _remember(self, file: BinaryIO) -> None:
        start = max(0, self._offset - REMEMBERED)
        file.seek(start)
        self._before = file.read(self._offset - start)

    def _add(self, found: Columns) -> None:
        """Add the records of some lines, numbered behind those that are there."""
        rows = np.cumsum(found.is_used) - 1 + len(self._stamps[0])
        for stamp, column in zip(
            self._stamps, (found.iters, found.epochs, found.times), strict=True
        ):
            stamp.frombytes(column[found.is_used].tobytes())
        for name, (lines, values) in found.values.items():
            series = self.series.get(name)
            if series is None:
                if len(self.series) >= MOST_NAMES:
                    continue
                span, phase = found.kinds[name]
                series = self.series[name] = Series(span=span, phase=phase)
            series.rows.frombytes(rows[lines].astype(np.int64).tobytes())
            series.values.frombytes(values.tobytes())
            self.count += len(values)

    def points(self, name: str) -> Points | None:
        """Return the values of a metric; None if there is none of that name."""
        with self.lock:
            series = self.series.get(name)
            if series is None:
                return None
            rows = np.array(series.rows)
            iters, epochs, times = (np.array(stamp)[rows] for stamp in self._stamps)
            return Points(iters, epochs, times, np.array(series.values))

    def stamps(self) -> Points:
        """Return iteration, epoch and time of every record, without values."""
        with self.lock:
            iters, epochs, times = (np.array(stamp) for stamp in self._stamps)
            return Points(iters, epochs, times, np.empty(0))

    def latest(self) -> dict[str, float]:
        """Return the last value of each metric."""
        with self.lock:
            return {name: series.values[-1] for name, series in self.series.items()}

    def describe(self) -> list[dict[str, object]]:
        """List the metrics: how many values, of what, and the first and last iteration."""
        with self.lock:
            iters = self._stamps[0]
            return [
                {
                    "name": name,
                    "count": len(series.values),
                    "span": series.span,
                    "phase": series.phase,
                    "first": int(iters[series.rows[0]]),
                    "last": int(iters[series.rows[-1]]),
                }
                for name, series in self.series.items()
            ]


def names_in(path: Path, start: int, most: int = 65_536) -> tuple[list[str], int]:
    """Return which metrics were written behind a position, as far as the end shows, and the iter.

    Raises:
        OSError: If the file cannot be read.
    """
    with opened_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(start, size - most))
        lines = file.read(most).split(b"\n")[:-1]
    names: dict[str, None] = {}
    last = 0
    for _, record in parse_lines(lines):
        names |= dict.fromkeys(name for name in record if name not in STAMPS)
        last = max(last, count_of(record.get("iter")) or 0)
    return list(names)[:MOST_NAMES], last
