"""Follow ``metrics.jsonl`` while a run writes it: compact columns, and only what is new is read."""

from __future__ import annotations

import json
import math
import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from hookloop.runs.reading import opened_to_read, parse_json
from hookloop.runs.records import to_number
from hookloop.runs.series import LONGEST_LINE, STAMPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 4_000_000
"""Bytes that are read at once."""

MOST_VALUES = 30_000_000
"""How many numbers of a run are kept; the rest of a larger file is not shown."""

MOST_NAMES = 5_000
"""How many metrics of a run are kept."""

REMEMBERED = 64
"""Bytes before the end by which a file that was written again is noticed."""

LARGEST_INT = 1 << 53


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


class MetricsFile:
    """The metrics of a run; `update` reads what was added.

    Args:
        path: The file, which may be missing, torn, foreign or huge, and may be replaced.
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

    def update(self) -> bool:
        """Read what is new; return whether anything is.

        A file that was replaced or shortened, as a resume does it, is read again from its start.
        """
        with self.lock:
            try:
                with opened_to_read(self.path) as file:
                    return self._read(file)
            except OSError:
                had = bool(self.series)
                self._forget()
                return had

    def _read(self, file: BinaryIO) -> bool:
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
        for lines in self._whole_lines(file, status.st_size):
            if self.count >= MOST_VALUES:
                self.is_cut = True
                break
            self._add(lines)
        return self.count != before or (begins_again and had)

    def _whole_lines(self, file: BinaryIO, size: int) -> Iterator[list[bytes]]:
        """Yield complete lines, many at once; what is longer than a record is passed over."""
        rest = b""
        while self._offset + len(rest) < size:
            data = file.read(min(CHUNK, size - self._offset - len(rest)))
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            whole = sum(map(len, lines)) + len(lines)
            self._offset += whole
            if self._is_skipping and lines:
                lines, self._is_skipping = lines[1:], False
            if len(rest) > LONGEST_LINE or (self._is_skipping and rest):
                self._offset += len(rest)
                rest, self._is_skipping = b"", True
            if lines:
                yield [line for line in lines if len(line) <= LONGEST_LINE]
        start = max(0, self._offset - REMEMBERED)
        file.seek(start)
        self._before = file.read(self._offset - start)

    def _add(self, lines: list[bytes]) -> None:
        for record in _parse_all(lines):
            iteration = _count_of(record.get("iter"))
            if iteration is None:
                continue
            row = len(self._stamps[0])
            is_used = False
            for name, value in record.items():
                if name in STAMPS:
                    continue
                number = _float_of(value)
                if number is None:
                    continue
                series = self.series.get(name)
                if series is None:
                    if len(self.series) >= MOST_NAMES:
                        continue
                    series = self.series[name] = Series(
                        span=_word(record.get("span")), phase=_word(record.get("phase"))
                    )
                series.rows.append(row)
                series.values.append(number)
                self.count += 1
                is_used = True
            if is_used:
                epoch, time = _count_of(record.get("epoch")), _float_of(record.get("time"))
                self._stamps[0].append(iteration)
                self._stamps[1].append(0 if epoch is None else epoch)
                self._stamps[2].append(math.nan if time is None else time)

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


def _parse_all(lines: list[bytes]) -> Iterator[Mapping[str, object]]:
    try:  # All at once: a call for each line takes as long as the parsing.
        found = json.loads(b"[" + b",".join(lines) + b"]")
        is_whole = len(found) == len(lines)
    except (ValueError, RecursionError):
        is_whole = False
    if is_whole:
        yield from (record for record in found if isinstance(record, dict))
        return
    for line in lines:
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


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
    for record in _parse_all(lines):
        names |= dict.fromkeys(name for name in record if name not in STAMPS)
        last = max(last, _count_of(record.get("iter")) or 0)
    return list(names)[:MOST_NAMES], last


def _count_of(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < LARGEST_INT else None


def _float_of(value: object) -> float | None:
    if type(value) is float:  # Nearly all of them.
        return value
    number = to_number(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        return float(number)
    except OverflowError:  # A whole number of hundreds of digits is damage.
        return math.inf


def _word(value: object) -> str:
    return value[:40] if isinstance(value, str) else ""
