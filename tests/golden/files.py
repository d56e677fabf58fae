"""Read what a training left on disk, without clocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden import versions
from tests.golden.digests import flatten, messages, short, without_clocks, without_times

OF_A_MACHINE = ("environment.json", "hooks.json", "interventions.jsonl")
"""Files that describe a machine, or measure it: only their names are compared."""

NOT_COMPARED = ("config", "environment", "machine", "versions", "iter_timer_hook")
"""Parts of a checkpoint that say how it was made, or what the time is."""

ENTRY = ("size", "crc32")


def read_directory(directory: Path) -> dict[str, Any]:
    """Return the content of every file below a directory, but for what a recorder put there."""
    own = ("record_", "out_", "err_", "dead_")
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    names = [without_times(path.relative_to(directory).as_posix()) for path in paths]
    kept = {
        name: path
        for name, path in zip(names, paths, strict=True)
        if ("/" not in name and not name.startswith(own)) or "/" in name
    }
    contents = {name: _read(path) for name, path in kept.items()}
    return {"names": dict.fromkeys(kept, "is there"), **contents}


def _read(path: Path) -> dict[str, Any]:  # noqa: PLR0911 - one for each kind of file
    try:
        if path.name in OF_A_MACHINE:
            return {}
        if path.suffix in (".pth", ".pt"):
            return _read_checkpoint(path)
        if path.suffix == ".jsonl" or path.parent.name == "vis_data":
            records = [json.loads(line) for line in path.read_text().splitlines()]
            return {
                f"line {number}": json.dumps(without_clocks(record))
                for number, record in enumerate(records, start=1)
            }
        if path.suffix == ".json":
            return flatten(json.loads(path.read_text()), leave_out=ENTRY)
        if path.suffix in (".log", ".csv", ".txt", ".yaml") or not path.suffix:
            lines = messages(path.read_text())
            return {f"line {number}": line for number, line in enumerate(lines, start=1)}
    except (UnicodeDecodeError, ValueError) as error:
        return {"problem": repr(error)}
    return {"bytes": short(path.read_bytes())}


def _read_checkpoint(path: Path) -> dict[str, Any]:
    return flatten(versions.read_checkpoint(path), leave_out=NOT_COMPARED)
