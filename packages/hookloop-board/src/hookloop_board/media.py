"""Pictures, texts, tables, histograms and confusion matrices of a run, by name and iteration."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import cast

from hookloop.runs import parse_json, read_cell, to_number
from hookloop_board.collection import Entry, NotFound
from hookloop_board.files import is_inside, list_inside, open_inside, read_inside, stamp_of

LARGEST = 32_000_000
"""Bytes of a picture, text or table that are sent."""

LARGEST_INDEX = 32_000_000
MOST_ROWS, MOST_COLUMNS = 1_000, 200
MOST_FILES = 50_000

KINDS = ("image", "text", "table", "histogram", "confusion")
FOLDERS = {
    "images": "image",
    "texts": "text",
    "tables": "table",
    "histograms": "histogram",
    "confusion": "confusion",
    "visual": "image",
}
"""The directories that are searched in a run without an index."""

SIGNS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_MOMENT = re.compile(r"(.*?)_?(?:epoch|iter)_(\d{1,15})(_batch_\d+)?")


@dataclass(frozen=True)
class Medium:
    """One file: what it shows, and when it was made."""

    kind: str
    name: str
    iter: int
    file: str
    epoch: int | None = None

    @property
    def id(self) -> str:
        """What stands for it in addresses."""
        return hashlib.sha256(self.file.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def media_view(entry: Entry) -> dict[str, object]:
    """Return the answer to ``/api/runs/RUN/media``."""
    found: dict[tuple[str, str], list[dict[str, object]]] = {}
    for one in sorted(media_of(entry), key=lambda one: (one.kind, one.name, one.iter)):
        step: dict[str, object] = {"iter": one.iter, "id": one.id}
        if one.epoch is not None:
            step["epoch"] = one.epoch
        found.setdefault((one.kind, one.name), []).append(step)
    return {
        "media": [
            {"kind": kind, "name": name, "steps": steps} for (kind, name), steps in found.items()
        ]
    }


def media_of(entry: Entry) -> list[Medium]:
    """Return the media of a run: those of its index, or what is in the usual directories."""
    indexed = _index(entry).values()
    if indexed:
        return [one for one in indexed if stamp_of(entry.home / one.file)]
    return list(_found(entry))[:MOST_FILES]


def _index(entry: Entry) -> dict[str, Medium]:
    """Return the media of the index by ID; it is read again only when it has changed."""
    stamp, kept = stamp_of(entry.dir.media_file), entry.kept.get("media")
    if isinstance(kept, tuple) and kept[0] == stamp:
        index: dict[str, Medium] = kept[1]
        return index
    latest = {(one.kind, one.name, one.iter): one for one in _indexed(entry)}
    index = {one.id: one for one in list(latest.values())[:MOST_FILES]}
    entry.kept["media"] = (stamp, index)
    return index


def medium(entry: Entry, number: str) -> Medium:
    """Return a medium by its ID.

    Raises:
        NotFound: If there is none.
    """
    found = _index(entry) or {one.id: one for one in media_of(entry)}
    if number not in found:
        raise NotFound("There is no such picture, text or table; it may have been deleted.")
    return found[number]


def read_image(entry: Entry, one: Medium) -> tuple[bytes, str]:
    """Return a picture and its type, which its first bytes decide.

    Raises:
        NotFound: If it is not a picture.
    """
    data = read_inside(entry.home, one.file, LARGEST)
    for sign, kind in SIGNS.items():
        if data.startswith(sign):
            return data, kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return data, "image/webp"
    raise NotFound("The file is not a PNG, JPEG, GIF or WebP picture.")


def read_medium(entry: Entry, one: Medium) -> dict[str, object]:
    """Return what a file shows, as the page draws it."""
    if one.kind == "text":
        return {"text": read_inside(entry.home, one.file, LARGEST).decode("utf-8", "replace")}
    if one.kind == "histogram":
        return _histogram(read_inside(entry.home, one.file, LARGEST))
    columns, rows, total = _table(entry, one.file)
    if one.kind == "confusion":
        return {
            "labels": [row[0] for row in rows if row],
            "matrix": [[_whole(cell) for cell in row[1:]] for row in rows],
        }
    return {"columns": columns, "rows": rows, "total_rows": total}


def _histogram(data: bytes) -> dict[str, object]:
    found = parse_json(data)
    edges, counts = (
        (found.get("edges"), found.get("counts")) if isinstance(found, dict) else (None, None)
    )
    is_right = (
        isinstance(edges, list)
        and isinstance(counts, list)
        and len(edges) == len(counts) + 1
        and all(isinstance(one, int | float) for one in [*map(to_number, edges), *counts])
    )
    if not is_right:
        raise ValueError("the file is not a histogram")
    return {"edges": edges, "counts": counts}


def _table(entry: Entry, file: str) -> tuple[list[str], list[list[str]], int]:
    with open_inside(entry.home, file) as opened:
        text = opened.read(LARGEST).decode("utf-8", "replace")
    reader = csv.reader(io.StringIO(text))
    columns: list[str] = []
    rows: list[list[str]] = []
    total = 0
    try:
        columns = list(map(read_cell, next(reader, [])[:MOST_COLUMNS]))
        for row in reader:
            total += 1
            if total <= MOST_ROWS:
                rows.append(list(map(read_cell, row[:MOST_COLUMNS])))
    except csv.Error as error:
        raise ValueError(f"the file is not a table: {error}") from error
    return columns, rows, total


def _whole(cell: str) -> int:
    try:
        return int(cell)
    except ValueError:
        return 0


def _indexed(entry: Entry) -> Iterator[Medium]:
    name = entry.dir.media_file.name
    try:
        lines = read_inside(entry.home, name, LARGEST_INDEX).split(b"\n")[:-1]
    except (OSError, ValueError):
        return
    for line in lines:
        try:
            one = parse_json(line)
        except ValueError:
            continue
        if not isinstance(one, dict):
            continue
        kind, shown, step, file = (one.get(key) for key in ("kind", "name", "iter", "file"))
        texts = all(isinstance(text, str) for text in (kind, shown, file))
        if texts and kind in KINDS and isinstance(step, int) and is_inside(cast("str", file)):
            yield Medium(cast("str", kind), cast("str", shown), step, cast("str", file))


def _found(entry: Entry) -> Iterator[Medium]:
    """Yield what is in the usual directories: ``images/NAME/STEP.png``, ``visual/*.png``."""
    for folder, kind in FOLDERS.items():
        for file, _ in list_inside(entry.home, folder):
            path = PurePosixPath(file)
            if kind == "confusion" and path.suffix != ".csv":
                continue
            inner = path.relative_to(folder)
            if path.stem.isdigit() and len(path.stem) < 16:
                yield Medium(kind, str(inner.parent), int(path.stem), file)
            elif moment := _MOMENT.fullmatch(path.stem):
                name = f"{moment[1]}{moment[3] or ''}".strip("_") or folder
                is_epoch = "epoch_" in path.stem
                number = int(moment[2])
                yield Medium(kind, name, number, file, number if is_epoch else None)
