"""`MediaFiles`: images, text and tables as files in the run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hookloop.runs.files import make_folder, write_bytes, write_text
from hookloop.writers.base import Writer
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Image, Record, Table, Text


class MediaFiles(Writer):
    """Writes ``images/<name>/<step>.png``, and likewise ``texts`` (.md) and ``tables`` (.csv).

    A record that a hook has saved to a file itself is skipped.

    Args:
        directory: The run's directory.
    """

    name = "files"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, records: Iterable[Record]) -> None:
        """Write a file for each image, text and table."""
        for record in records:
            match record:
                case Image() if record.file is None:
                    path = self._path("images", record.name, record.step, ".png")
                    # Not synced to disk: there may be many, and no resume needs one.
                    write_bytes(path, encode_png(record.pixels), durable=False)
                case Text():
                    path = self._path("texts", record.name, record.step, ".md")
                    write_text(path, record.text)
                case Table() if record.file is None:
                    path = self._path("tables", record.name, record.step, ".csv")
                    write_text(path, record.to_csv())
                case _:
                    pass

    def _path(self, kind: str, name: str, step: int | None, suffix: str) -> Path:
        folder = self.directory / kind / safe_name(name)
        make_folder(folder, self.directory)
        return folder / f"{step or 0:08d}{suffix}"


def safe_name(name: str) -> str:
    """Turn the name of a record into a relative path that cannot leave its directory.

    >>> safe_name("val/sample 3"), safe_name("../../etc")
    ('val/sample_3', 'etc')
    """
    parts = [re.sub(r"[^\w.=+-]+", "_", part).strip(".") for part in name.split("/")]
    return "/".join(part for part in parts if part) or "unnamed"
