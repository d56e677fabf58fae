"""Parse many lines of metrics at once, into columns of numbers.

A training writes the same keys again and again, so that nearly all lines differ in their numbers
alone. Such lines are compared and read by numpy, all at once, which is faster than a JSON
parser. Whatever is not exactly like that is left to the JSON parser, line by line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hookloop.runs.metrics_file import LONGEST_LINE, STAMPS
from hookloop.runs.reading import parse_json
from hookloop.runs.records import to_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

FEW = 8
"""Lines for which comparing is not worth its while."""

MOST_SHAPES = 20
"""How many kinds of lines are looked for in a part of a file."""

LONGEST_NUMBER = 40
MOST_SIGNS = 24
_IS_LONG = np.finfo(np.longdouble).nmant >= 63
MOST_DIGITS = 18 if _IS_LONG else 15
"""Digits for which the widest float of this machine has room."""

MOST_DECIMALS = 22
"""The largest power of ten that has room in any float."""

LARGEST_INT = 1 << 53

_NUMBER = re.compile(rb'(?<=": )(-?[0-9][0-9.eE+-]*)(?=[,}])')
_JSON_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_POWERS = np.cumprod([np.longdouble(1), *[np.longdouble(10)] * MOST_DECIMALS])


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

    iters: Floats
    epochs: Floats
    times: Floats
    is_used: Bools
    values: dict[str, tuple[Ints, Floats]]
    kinds: dict[str, tuple[str, str]]


def read_columns(data: bytes) -> Columns:
    """Return the numbers of whole lines; a line that is not a record is passed over."""
    text = _Text(data)
    reading = _Reading(len(text.starts))
    rest = np.flatnonzero(text.ends - text.starts <= LONGEST_LINE)
    for _ in range(MOST_SHAPES):
        if len(rest) < FEW:
            break
        # In the middle, because a file may begin with something else.
        shape = _shape_of(text.line(int(rest[len(rest) // 2])))
        alike = text.find(shape, rest) if shape is not None else None
        if shape is None or alike is None or not len(alike.rows):
            break
        numbers = text.numbers(alike, {shape.places.get(name) for name in ("iter", "epoch")})
        if numbers is None:
            break
        reading.add_block(alike.rows, shape, numbers)
        rest = np.setdiff1d(rest, alike.rows, assume_unique=True)
    reading.add_records(rest.tolist(), [text.line(row) for row in rest.tolist()])
    return reading.columns()


def parse_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the JSON objects among lines, each with its number."""
    for number, line in enumerate(lines):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield number, record


def count_of(value: object) -> int | None:
    """Return a whole number of plausible size; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < LARGEST_INT else None


@dataclass(frozen=True)
class _Shape:
    """What lines have in common.

    Attributes:
        pieces: The text before each number, and after the last.
        places: Which number belongs to each key.
        texts: The other values.
    """

    pieces: Sequence[bytes]
    places: Mapping[str, int]
    texts: Mapping[str, object]


def _shape_of(line: bytes) -> _Shape | None:
    """Return the shape of a line; None if its numbers do not stand plainly behind their keys."""
    pieces = _NUMBER.split(line)[::2]
    # Read again with a number in each place, to learn which key it belongs to.
    numbered = b"".join(b"%s%d" % (piece, place) for place, piece in enumerate(pieces[:-1]))
    try:
        record = parse_json(numbered + pieces[-1])
    except ValueError:
        return None
    if not isinstance(record, dict) or pieces[-1] != b"}":
        return None
    places = {name: value for name, value in record.items() if type(value) is int}
    texts = {name: value for name, value in record.items() if type(value) is not int}
    # Otherwise a key is there twice, or a number is inside of a text or a list.
    is_plain = sorted(places.values()) == list(range(len(pieces) - 1))
    return _Shape(pieces, places, texts) if is_plain and "iter" in places else None


@dataclass(frozen=True)
class _Alike:
    """Lines of one shape: which, and where each of their numbers begins and ends."""

    rows: Ints
    begins: Ints
    ends: Ints


class _Text:
    """Lines, and where their quotation marks are: all of their keys are found by these.

    Args:
        data: Whole lines.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, np.uint8)
        self.ends = np.flatnonzero(self._bytes == ord("\n"))
        self.starts = np.concatenate([[0], self.ends[:-1] + 1])[: len(self.ends)]
        self._quotes = np.flatnonzero(self._bytes == ord('"'))
        self._first = np.searchsorted(self._quotes, self.starts)
        self._count = np.searchsorted(self._quotes, self.ends) - self._first

    def line(self, row: int) -> bytes:
        """Return a line, without its end."""
        return self._data[self.starts[row] : self.ends[row]]

    def find(self, shape: _Shape, rows: Ints) -> _Alike:
        """Return the lines among ``rows`` that differ from a shape in their numbers alone."""
        counts = [piece.count(b'"') for piece in shape.pieces]
        rows = rows[self._count[rows] == sum(counts)]
        begins, ends = [], []
        before = 0
        for piece, count in zip(shape.pieces[:-1], counts, strict=False):
            # Each of them has a key in it, so that its first quotation mark says where it is.
            place = self._quotes[self._first[rows] + before] - piece.index(b'"')
            ends.append(place)
            begins.append(place + len(piece))
            is_alike = self._has(piece, place)
            rows, *begins = (one[is_alike] for one in (rows, *begins))
            ends = [one[is_alike] for one in ends]
            before += count
        ends = [*ends[1:], self.ends[rows] - 1]
        is_whole = (begins[0] - len(shape.pieces[0]) == self.starts[rows]) & (
            self._bytes[ends[-1]] == ord("}")
        )
        for begin, end in zip(begins, ends, strict=True):
            is_whole &= (end > begin) & (end - begin <= LONGEST_NUMBER)
        pairs = [np.array(one)[:, is_whole] for one in (begins, ends)]
        return _Alike(rows[is_whole], *pairs)

    def _has(self, piece: bytes, places: Ints) -> Bools:
        """Return whether a piece of text is at each place."""
        inside = (places >= 0) & (places + len(piece) <= len(self._bytes))
        if not len(self._bytes) >= len(piece):
            return inside
        windows = np.lib.stride_tricks.sliding_window_view(self._bytes, len(piece))
        found = windows[np.where(inside, places, 0)] == np.frombuffer(piece, np.uint8)
        is_there: Bools = inside & found.all(axis=1)
        return is_there

    def numbers(self, alike: _Alike, whole: Container[int | None]) -> list[Floats] | None:
        """Return the numbers of lines, place by place; None if something else is among them.

        Args:
            alike: The lines.
            whole: The places of whole numbers.
        """
        found: list[Floats] = []
        points = np.flatnonzero(self._bytes == ord("."))
        for begins, ends in zip(alike.begins, alike.ends, strict=True):
            is_whole = len(found) in whole
            first, last = (np.searchsorted(points, one) for one in (begins, ends))
            if is_whole and (first != last).any():
                return None
            column, is_read = _decimals(self._bytes, begins, ends - begins)
            others = np.flatnonzero(~is_read)
            cuts = zip(*(one[others].tolist() for one in (begins, ends)), strict=True)
            for row, (begin, end) in zip(others.tolist(), cuts, strict=True):
                text = self._data[begin:end]
                if is_whole or not _JSON_NUMBER.fullmatch(text):
                    return None
                column[row] = float(text)
            found.append(column)
        return found


def _decimals(data: NDArray[np.uint8], begins: Ints, lengths: Ints) -> tuple[Floats, Bools]:
    """Return numbers such as -12.345, and which of them are exactly what Python would read.

    Those with an exponent, with many digits, or that are something else, are left out.
    """
    whole = np.zeros(len(begins), np.uint64)
    digits, zeros, decimals, dots = (np.zeros(len(begins), np.int8) for _ in range(4))
    is_negative = data[begins] == ord("-")
    others = is_negative.astype(np.int8)
    for place in range(min(int(lengths.max()), MOST_SIGNS)):
        sign = data[np.minimum(begins + place, len(data) - 1)]
        is_inside = place < lengths
        is_digit = (sign - ord("0") < 10) & is_inside
        np.copyto(whole, whole * 10 + (sign - ord("0")), where=is_digit)
        digits += is_digit
        zeros += is_digit & (whole == 0)
        decimals += is_digit & (dots > 0)
        dots += (sign == ord(".")) & is_inside
    is_read = (digits + dots + others == lengths) & (digits > 0)
    first = begins + is_negative
    following = data[np.minimum(first + 1, len(data) - 1)]
    is_read &= (data[first] != ord("0")) | (digits == 1) | (following == ord("."))
    is_read &= (digits - zeros <= MOST_DIGITS) & (decimals <= MOST_DECIMALS)
    is_read &= (dots == 0) | ((dots == 1) & (decimals > 0) & (decimals < digits))
    exact = whole.astype(np.longdouble) / _POWERS[np.minimum(decimals, MOST_DECIMALS)]
    column = exact.astype(np.float64)
    # The quotient is rounded twice, which matters if it lies just between two numbers.
    is_read &= np.abs(exact - column) * 2 != np.spacing(column)
    np.negative(column, out=column, where=is_negative)
    return column, is_read


@dataclass
class _Reading:
    """Puts together what was found in groups of lines."""

    size: int
    parts: dict[str, list[tuple[Ints, Floats]]] = field(default_factory=dict)
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.iters, self.epochs = np.zeros(self.size), np.zeros(self.size)
        self.times = np.full(self.size, math.nan)
        self.is_used = np.zeros(self.size, np.bool_)

    def add_block(self, rows: Ints, shape: _Shape, numbers: list[Floats]) -> None:
        """Add lines of one shape."""
        found = {name: numbers[place] for name, place in shape.places.items()}
        for name, text in shape.texts.items():  # NaN and the infinities are texts.
            number = _float_of(text)
            if number is not None:
                found[name] = np.full(len(rows), number)
        is_record = _is_count(found["iter"])
        if not is_record.all():
            rows = rows[is_record]
            found = {name: column[is_record] for name, column in found.items()}
        if not len(rows):
            return
        self.iters[rows] = found["iter"]
        if "epoch" in found:
            self.epochs[rows] = np.where(_is_count(found["epoch"]), found["epoch"], 0)
        self.times[rows] = found.get("time", math.nan)
        for name, values in found.items():
            if name not in STAMPS:
                self._add(name, rows, values, shape.texts)
                self.is_used[rows] = True

    def add_records(self, numbers: list[int], lines: Sequence[bytes]) -> None:
        """Add lines of any kind."""
        found: dict[str, tuple[list[int], list[float]]] = {}
        kinds: dict[str, Mapping[str, object]] = {}
        for place, record in parse_lines(lines):
            iteration = count_of(record.get("iter"))
            if iteration is None:
                continue
            row = numbers[place]
            for name, value in record.items():
                number = _float_of(value) if name not in STAMPS else None
                if number is not None:
                    rows, values = found.setdefault(name, ([], []))
                    rows.append(row)
                    values.append(number)
                    kinds.setdefault(name, record)
                    self.is_used[row] = True
            time = _float_of(record.get("time"))
            self.iters[row] = iteration
            self.epochs[row] = count_of(record.get("epoch")) or 0
            self.times[row] = math.nan if time is None else time
        for name, (rows, values) in found.items():
            self._add(name, np.array(rows, np.int64), np.array(values), kinds[name])

    def columns(self) -> Columns:
        """Return all of it, in the order of the lines."""
        values = {}
        for name, parts in self.parts.items():
            rows = np.concatenate([rows for rows, _ in parts])
            order = np.argsort(rows, kind="stable")
            values[name] = rows[order], np.concatenate([one for _, one in parts])[order]
        return Columns(self.iters, self.epochs, self.times, self.is_used, values, self.kinds)

    def _add(
        self,
        name: str,
        rows: Ints,
        values: Floats,
        texts: Mapping[str, object],
    ) -> None:
        self.parts.setdefault(name, []).append((rows, values))
        self.kinds.setdefault(name, (_word(texts.get("span")), _word(texts.get("phase"))))


def _is_count(column: Floats) -> Bools:
    found: Bools = (column >= 0) & (column < LARGEST_INT) & (column % 1 == 0)
    return found


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
