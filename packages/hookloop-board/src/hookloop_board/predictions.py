"""The predictions of a run, a row per sample, the worst first."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import PurePosixPath

from hookloop_board.collection import Entry, NotFound
from hookloop_board.files import list_inside, read_inside, stamp_of
from hookloop_board.prediction_files import LARGEST, Table, is_table, read_table

FOLDER = "predictions"
MOST_FILES, MOST_PAGE = 1_000, 1_000


def predictions_view(
    entry: Entry,
    number: str | None = None,
    offset: int = 0,
    limit: int = 100,
    sort: str | None = None,
    descending: bool = False,
) -> dict[str, object]:
    """Return the answer to ``/api/runs/RUN/predictions``: the newest file, unless one is chosen."""
    files = _files(entry)
    if not files:
        return {"files": [], "columns": [], "rows": [], "total": 0}
    chosen = number if number is not None else next(iter(files))
    if chosen not in files:
        raise NotFound("There is no such file of predictions; it may have been deleted.")
    columns, rows = _read(entry, files[chosen])
    order = sorted_rows(columns, rows, sort, descending=descending)
    begin, size = max(0, offset), min(max(1, limit), MOST_PAGE)
    return {
        "files": [{"id": key, "name": PurePosixPath(file).name} for key, file in files.items()],
        "file": chosen,
        "columns": columns,
        "rows": order[begin : begin + size],
        "total": len(rows),
    }


def sorted_rows(
    columns: list[str], rows: list[list[str]], sort: str | None, *, descending: bool
) -> list[list[str]]:
    """Sort rows by a column; without one, the worst come first as far as the columns show them.

    >>> sorted_rows(["id", "loss"], [["0", "0.1"], ["1", "2.5"]], None, descending=False)
    [['1', '2.5'], ['0', '0.1']]
    """
    if sort is not None:
        if sort not in columns:
            raise NotFound("There is no such column.")
        return _by(rows, columns.index(sort), descending=descending)
    for name in columns:
        if re.fullmatch(r"(.*[_/])?(loss|error)", name):
            return _by(rows, columns.index(name), descending=True)
    scores = [place for place, name in enumerate(columns) if re.fullmatch(r"output_.+", name)]
    if "targets" in columns and len(scores) > 1:
        return _confidently_wrong(columns, rows, scores)
    if "targets" in columns and "output" in columns:
        one, other = columns.index("output"), columns.index("targets")
        return sorted(rows, key=lambda row: row[one : one + 1] == row[other : other + 1])
    return rows


def _by(rows: list[list[str]], place: int, *, descending: bool) -> list[list[str]]:
    """Sort by numbers, and by text where they are none; what is missing comes last."""
    keyed = [(row, _number(row[place]) if place < len(row) else None) for row in rows]
    numbers = [(row, value) for row, value in keyed if value is not None]
    texts = [row for row, value in keyed if value is None]
    numbers.sort(key=lambda pair: pair[1], reverse=descending)
    texts.sort(key=lambda row: row[place] if place < len(row) else "", reverse=descending)
    return [*(row for row, _ in numbers), *texts]


def _confidently_wrong(
    columns: list[str], rows: list[list[str]], scores: list[int]
) -> list[list[str]]:
    """Sort by how far the highest score is above that of the true class."""
    names = [columns[place].removeprefix("output_") for place in scores]
    target = columns.index("targets")

    def distance(row: list[str]) -> float:
        values = [_number(row[place]) if place < len(row) else None for place in scores]
        known = [value for value in values if value is not None]
        true = row[target] if target < len(row) else ""
        if len(known) != len(scores):
            return math.inf
        if true in names:
            own = known[names.index(true)]
        elif (number := _number(true)) is not None and number in range(len(known)):
            own = known[int(number)]
        else:
            return math.inf
        return own - max(known)

    return sorted(rows, key=distance)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _files(entry: Entry) -> dict[str, str]:
    """Return the tables of predictions by ID, the newest first."""
    listed = [
        (status.st_mtime_ns, file)
        for file, status in list_inside(entry.home, FOLDER)
        if is_table(file)
    ]
    newest = sorted(listed, reverse=True)[:MOST_FILES]
    return {hashlib.sha256(file.encode()).hexdigest()[:16]: file for _, file in newest}


def _read(entry: Entry, file: str) -> Table:
    stamp = stamp_of(entry.home / file)
    kept = entry.kept.get("predictions")
    if isinstance(kept, tuple) and kept[0] == (file, stamp):
        table: Table = kept[1]
        return table
    table = read_table(file, read_inside(entry.home, file, LARGEST))
    entry.kept["predictions"] = ((file, stamp), table)  # One, not all that were ever looked at.
    return table
