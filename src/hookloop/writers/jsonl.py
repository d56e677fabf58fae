"""Records as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hookloop.runs.records import to_json


class JsonLines:
    """Appends one JSON object per line; each line is on its way to disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8")

    def write(self, record: Mapping[str, object]) -> None:
        """Append a record."""
        self._file.write(to_json(record) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def drop_after(path: Path, iteration: int) -> None:
    """Remove the records of iterations that a resumed run is going to make once more."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # Half a line: the run was killed while it wrote.
            continue
        if line.endswith("\n") and record.get("iter", 0) <= iteration:
            kept.append(line)
    path.write_text("".join(kept), encoding="utf-8")
