"""`MediaFiles`: images, text, tables and histograms as files in the run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hookloop.runs.files import append, make_folder, write_bytes, write_text
from hookloop.runs.layout import RunDir
from hookloop.runs.records import to_json
from hookloop.writers.base import Writer
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Histogram, Image, Record, Table, Text

BINS = 64
"""How many bars a histogram has."""


class MediaFiles(Writer):
    """Writes ``images/<name>/<step>.png``, and likewise ``texts`` (.md) and ``tables`` (.csv).

    Histograms become ``histograms/<name>/<step>.json``, with ``edges`` and ``counts``. A record
    that a hook has saved to a file itself is not written again. ``media.jsonl`` lists all of them.

    Args:
        directory: The run's directory.
    """

    name = "files"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, records: Iterable[Record]) -> None:
        """Write a file for each image, text, table and histogram."""
        listed = [self._write(record) for record in records]
        if lines := "".join(f"{to_json(line)}\n" for line in listed if line is not None):
            index = RunDir(self.directory).media_file
            if index.is_symlink():  # Replaced, as by files that are written whole.
                index.unlink()
            append(index, lines)

    def _write(self, record: Record) -> dict[str, object] | None:
        """Write the file of a record; return its line in the index, or None without a file."""
        match record:
            case Image():
                kind, path = "image", record.file or self._path("images", record, ".png")
                if record.file is None:
                    # Not synced to disk: there may be many, and no resume needs one.
                    write_bytes(path, encode_png(record.pixels), durable=False)
            case Text():
                kind, path = "text", self._path("texts", record, ".md")
                write_text(path, record.text)
            case Table():
                kind, path = "table", record.file or self._path("tables", record, ".csv")
                if record.file is None:
                    write_text(path, record.to_csv())
                if record.name.endswith("confusion") and list(record.columns)[:1] == ["true"]:
                    kind = "confusion"
            case Histogram() if len(record.values):
                kind, path = "histogram", self._path("histograms", record, ".json")
                counts, edges = np.histogram(record.values.astype(np.float64), BINS)
                content = {"edges": edges.tolist(), "counts": counts.tolist()}
                write_bytes(path, to_json(content).encode(), durable=False)
            case _:
                return None
        if not path.is_relative_to(self.directory):  # A hook's own file somewhere else.
            return None
        file = path.relative_to(self.directory).as_posix()
        return {"kind": kind, "name": record.name, "iter": record.step or 0, "file": file}

    def _path(self, kind: str, record: Image | Text | Table | Histogram, suffix: str) -> Path:
        folder = self.directory / kind / safe_name(record.name)
        make_folder(folder, self.directory)
        return folder / f"{record.step or 0:08d}{suffix}"


def safe_name(name: str) -> str:
    """Turn the name of a record into a relative path that cannot leave its directory.

    >>> safe_name("val/sample 3"), safe_name("../../etc")
    ('val/sample_3', 'etc')
    """
    parts = [re.sub(r"[^\w.=+-]+", "_", part).strip(".") for part in name.split("/")]
    return "/".join(part for part in parts if part) or "unnamed"
