"""Pictures, text and tables as files of the run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hookloop.writers.base import Writer
from hookloop.writers.pixels import encode_png
from hookloop.writers.records import Image, Record, Table, Text


class MediaFiles(Writer):
    """Writes ``images/<name>/<step>.png``, and likewise ``texts`` (.md) and ``tables`` (.csv).

    What a hook has put into a file of its own is left alone.

    Args:
        directory: The run's directory.
    """

    name = "files"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, records: Iterable[Record]) -> None:
        """Write a file for each record that is one."""
        for record in records:
            match record:
                case Image() if record.file is None:
                    path = self._path("images", record.name, record.step, ".png")
                    path.write_bytes(encode_png(record.pixels))
                case Text():
                    path = self._path("texts", record.name, record.step, ".md")
                    path.write_text(record.text, encoding="utf-8")
                case Table() if record.file is None:
                    path = self._path("tables", record.name, record.step, ".csv")
                    path.write_text(record.to_csv(), encoding="utf-8")
                case _:
                    pass

    def _path(self, kind: str, name: str, step: int | None, suffix: str) -> Path:
        folder = self.directory / kind / safe_name(name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{step or 0:08d}{suffix}"


def safe_name(name: str) -> str:
    """Turn the name of a record into a path that stays where it belongs.

    >>> safe_name("val/sample 3"), safe_name("../../etc")
    ('val/sample_3', 'etc')
    """
    parts = [re.sub(r"[^\w.=+-]+", "_", part).strip(".") for part in name.split("/")]
    return "/".join(part for part in parts if part) or "unnamed"
