"""Parse lines of metrics into columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import orjson

from hookloop.runs import LONGEST_LINE, STAMPS, parse_json, to_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_INT = 1 << 53


@dataclass
class Columns:
    """What some lines hold.

    Attributes:
        iters: The iteration of each line.
        epochs: The epochs completed by then.
        times: When it was written; NaN if unknown.
        is_used: Which lines are records with a metric.
        values: The metrics by name: the numbers of the lines, and the value in each.
        kinds: The span and phase of each metric.
    """

    iters: NDArray[np.float64]
    epochs: NDArray[np.float64]
    times: NDArray[np.float64]
    is_used: NDArray[np.bool_]
    values: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]
    kinds: dict[str, tuple[str, str]]


def read_columns(data: bytes) -> Columns:
    """Return the numbers of whole lines; a line that is not a record is passed over."""
    lines = data.split(b"\n")[:-1]
    iters, epochs = np.zeros(len(lines)), np.zeros(len(lines))
    times, is_used = np.full(len(lines), math.nan), np.zeros(len(lines), np.bool_)
    found: dict[str, tuple[list[int], list[float]]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for row, record in parse_lines(lines):
        iteration = count_of(record.get("iter"))
        if iteration is None:
            continue
        for name, value in record.items():
            number = _float_of(value) if name not in STAMPS else None
            if number is None:
                continue
            if name not in found:
                found[name] = [], []
                kinds[name] = _word(record.get("span")), _word(record.get("phase"))
            rows, values = found[name]
            rows.append(row)
            values.append(number)
            is_used[row] = True
        time = _float_of(record.get("time"))
        iters[row] = iteration
        epochs[row] = count_of(record.get("epoch")) or 0
        times[row] = math.nan if time is None else time
    columns = {
        name: (np.array(rows, np.int64), np.array(values)) for name, (rows, values) in found.items()
    }
    return Columns(iters, epochs, times, is_used, columns, kinds)


def parse_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the JSON objects among lines, each with its number; a line that is too long is none."""
    for number, line in enumerate(lines):
        if len(line) > LONGEST_LINE:
            continue
        try:
            record = _parse(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield number, record


def _parse(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except ValueError:  # It knows no NaN, and no whole number of hundreds of digits.
        return parse_json(line)


def count_of(value: object) -> int | None:
    """Return a whole number of plausible size; None for anything else."""
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
