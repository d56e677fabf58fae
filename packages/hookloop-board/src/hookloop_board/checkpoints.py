"""The checkpoints of a run: what the index lists, whether the files are whole, and commands."""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hookloop.runs import CHECKPOINT_INDEX as INDEX
from hookloop.runs import CHECKPOINT_MANIFEST as MANIFEST
from hookloop.runs import LAST_CHECKPOINT as LAST
from hookloop.runs import find_damage, parse_json, to_number
from hookloop_board.collection import Entry, NotFound
from hookloop_board.files import is_inside, open_inside, read_inside
from hookloop_board.run_view import quote

LARGEST = 1 << 26
LONGEST_POINTER = 4096
"""How many bytes of the name of the newest checkpoint are read."""
CHUNK = 1 << 20
MOST = 2_000
"""How many checkpoints are listed."""

Verdict = tuple[str, str]
"""``ok``, ``damaged``, ``missing`` or ``unchecked``, and a sentence."""


def checkpoints_view(entry: Entry) -> dict[str, object]:
    """Return the answer to ``/api/runs/RUN/checkpoints``."""
    last = _last(entry)
    best = _best_of(entry)
    is_running = entry.summary.status == "running"
    return {
        "checkpoints": [
            {
                "name": name,
                "iter": one.get("iter"),
                "epoch": one.get("epoch"),
                "size": one.get("size"),
                "time": _iso(one.get("time")),
                "metrics": _metrics(one.get("metrics")),
                "is_last": name == last,
                "best_of": best.get(name, []),
                "state": _verdict(entry, name, one)[0],
                "kind": one.get("kind"),
                "forever": bool(one.get("forever")),
                "commands": shell_commands(
                    entry, name, can_resume=_can_resume(one) and not is_running
                ),
            }
            for name, one in _listed(entry).items()
        ]
    }


def verify(entry: Entry, name: object) -> dict[str, object]:
    """Read a checkpoint and compare it with its checksum.

    Raises:
        NotFound: If the index lists no checkpoint of that name.
    """
    listed = _listed(entry)
    if not isinstance(name, str) or name not in listed:
        raise NotFound("There is no such checkpoint; it may have been replaced by a newer one.")
    state, detail = _verdict(entry, name, listed[name])
    if state == "unchecked":
        state, detail = _check(entry.home, name, listed[name])
        _verdicts(entry)[name, _stamp(entry.home / name)] = (state, detail)
    return {"state": state, "detail": detail}


def shell_commands(entry: Entry, name: str, *, can_resume: bool) -> dict[str, str]:
    """Return what to write in a shell to use a checkpoint; nothing without a config to build."""
    config = entry.row.config
    if not entry.has_config:
        return {}
    home = entry.home.absolute()  # They are pasted in any directory.
    chosen = f"--checkpoint {quote(home / name)}"
    rest = f"{quote(home)} {chosen}"
    keys = {"test_data": "data.test", "val_data": "val_data"}
    streams = [name for name, key in keys.items() if _has_key(config, key)]
    found = {"resume": f"hookloop resume {rest}"} if can_resume else {}
    if "test_data" in streams:
        found["test"] = f"hookloop test {rest}"
    if streams:
        found["predict"] = f"hookloop predict {quote(home)} {streams[0]} {chosen}"
    return found | {"export": f"hookloop export {rest}", "publish": f"hookloop publish {rest}"}


def _has_key(config: Mapping[str, object], key: str) -> bool:
    return any(one == key or one.startswith(f"{key}.") for one in config)


def _listed(entry: Entry) -> dict[str, Mapping[str, object]]:
    """Return the entries of the index by name; a name that leads elsewhere is left out."""
    try:
        data = parse_json(read_inside(entry.home, INDEX, LARGEST))
    except (OSError, ValueError):
        return {}
    found = data.get("checkpoints") if isinstance(data, dict) else None
    listed: dict[str, Mapping[str, object]] = {}
    for one in found[:MOST] if isinstance(found, list) else []:
        name = one.get("name") if isinstance(one, dict) else None
        if isinstance(name, str) and is_inside(name) and "/" not in name:
            listed[name] = one
    return listed


def _can_resume(one: Mapping[str, object]) -> bool:
    return one.get("kind") != "exception" and not one.get("left_out")


def _last(entry: Entry) -> str | None:
    try:
        text = read_inside(entry.home, LAST, LONGEST_POINTER).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return None
    return text or None


def _best_of(entry: Entry) -> dict[str, list[str]]:
    """Return the metrics of which each checkpoint has the best value that the run had."""
    found: dict[str, list[str]] = {}
    for name, one in _listed(entry).items():
        for metric, best in entry.summary.bests.items():
            if one.get("iter") == best.iter and best.iter:
                found.setdefault(name, []).append(metric)
    return found


# --- whether a file is whole ----------------------------------------------------------------------


def _verdict(entry: Entry, name: str, one: Mapping[str, object]) -> Verdict:
    """Return what is known without reading the file."""
    try:
        found = os.lstat(entry.home / name)
    except OSError:
        return "missing", "the file is gone"
    if stat.S_ISLNK(found.st_mode):
        return "damaged", "it is a link, which is not followed"
    size = one.get("size")
    if stat.S_ISREG(found.st_mode) and isinstance(size, int) and size and found.st_size != size:
        return "damaged", f"it has {found.st_size:,} bytes instead of {size:,}"
    known = _verdicts(entry).get((name, _stamp(entry.home / name)))
    return known or ("unchecked", "its contents were not read")


def _verdicts(entry: Entry) -> dict[tuple[str, object], Verdict]:
    kept = entry.kept.setdefault("verdicts", {})
    assert isinstance(kept, dict)
    return kept


def _stamp(path: Path) -> object:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _check(home: Path, name: str, one: Mapping[str, object]) -> Verdict:
    try:
        if (home / name).is_dir():
            return _check_folder(home, name)
        expected = one.get("crc32")
        if not isinstance(expected, int) or not expected:
            return "unchecked", "the index has no checksum of it"
        with open_inside(home, name) as file:
            damage = _reject_packed(file) or find_damage(file, expected)
    except (OSError, ValueError, NotImplementedError, RuntimeError, zlib.error) as error:
        return "damaged", f"it cannot be read: {error}"
    return ("damaged", damage) if damage else ("ok", "size and checksum are right")


def _reject_packed(file: BinaryIO) -> str | None:
    """Reject an archive that is larger than it seems: to read it could take days."""
    try:
        entries = zipfile.ZipFile(file).infolist()
    except zipfile.BadZipFile:
        entries = []
    size = file.seek(0, 2)
    if any(entry.compress_type for entry in entries) or sum(e.file_size for e in entries) > size:
        return "it is not an archive as a training writes it"
    return None


def _check_folder(home: Path, name: str) -> Verdict:
    """Compare a directory with its manifest."""
    data = read_inside(home, f"{name}/{MANIFEST}", LARGEST)
    content = json.loads(data)
    files = content["body"]["files"] if isinstance(content, dict) else None
    if not isinstance(files, dict):
        return "damaged", "its manifest is not one"
    for inner, about in files.items():
        if not is_inside(inner) or "/" in inner:
            return "damaged", f"{inner!r} leads out of it"
        with open_inside(home, f"{name}/{inner}") as file:
            size, total = _sum(file)
        if not isinstance(about, dict) or (size, total) != (about.get("size"), about.get("crc32")):
            return "damaged", f"'{inner}' has changed"
    return "ok", f"{len(files)} files are as they were written"


def _sum(file: BinaryIO) -> tuple[int, int]:
    size = total = 0
    while chunk := file.read(CHUNK):
        size, total = size + len(chunk), zlib.crc32(chunk, total)
    return size, total


def _metrics(value: object) -> dict[str, object]:
    found = value if isinstance(value, dict) else {}
    to: Callable[[object], object] = to_number
    return {
        str(name): number
        for name, one in found.items()
        if isinstance(number := to(one), int | float) and not isinstance(number, bool)
    }


def _iso(value: object) -> str | None:
    try:
        return datetime.fromtimestamp(float(str(value)), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
