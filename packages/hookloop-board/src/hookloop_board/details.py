"""Config, environment and log of a run."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.runs import (
    differing,
    is_whole,
    key_lines,
    parse_config,
    read_environment,
    read_starts,
)
from hookloop_board.collection import CONFIGS, Entry
from hookloop_board.files import open_inside, read_inside

LARGEST = 1_000_000
"""Bytes of a config that are read."""
LOG_PART = 65_536
MOST_LOG = 1_000_000
"""Bytes of the log that are sent at once."""


def config_view(entry: Entry, other: Entry | None) -> dict[str, object]:
    """Return the config of a run: as text, and by key, beside that of another run.

    For a run that a script made, with what that was found to train with.
    """
    texts = {name: _text(entry, name) for name in CONFIGS}
    parts = {name: parse_config(text) for name, text in texts.items() if text}
    if is_whole(parts.get("config.yaml", {})):
        parts.pop("trained_with.yaml", None)
    texts = {name: texts[name] for name in parts}
    # What the script says comes before what its objects were found to be.
    ours: dict[str, object] = {}
    for part in parts.values():
        ours |= {key: value for key, value in part.items() if key not in ours}
    theirs = dict(other.row.config) if other is not None else {}
    lines, given = _places(parts, texts), _overrides(entry)
    values: list[dict[str, object]] = []
    for key in dict.fromkeys([*ours, *theirs]):
        one: dict[str, object] = {"key": key, "value": ours.get(key), "source": None}
        if key in ours:
            one["source"] = "command line" if key in given else lines.get(key)
        if other is not None:
            one["differs"] = repr(ours.get(key)) != repr(theirs.get(key))
            if key in theirs:
                one["other"] = theirs[key]
        else:
            one["differs"] = False
        values.append(one)
    return {"text": "\n".join(texts.values()), "values": values}


def _text(entry: Entry, name: str) -> str:
    try:
        return read_inside(entry.home, name, LARGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _places(parts: Mapping[str, Mapping[str, object]], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the file and line of each key: of two files, the first that has it."""
    found: dict[str, str] = {}
    for name, values in parts.items():
        lines = key_lines(texts[name])
        found |= {
            key: f"{name}:{lines[key]}" for key in values if key in lines and key not in found
        }
    return found


def _overrides(entry: Entry) -> set[str]:
    """Return the keys that the command line of the first start has set."""
    starts = read_starts(entry.home)
    command = starts[0].get("command") if starts else None
    words = [str(word) for word in command] if isinstance(command, list) else []
    return {word.partition("=")[0] for word in words if "=" in word and word[:1] != "-"}


def environment_view(entry: Entry, other: Entry | None) -> dict[str, object]:
    """Return where a run was made, and what differs from another."""
    differences: list[dict[str, object]] = []
    if other is not None:
        found = differing(read_environment(entry.dir), read_environment(other.dir))
        differences = [
            {"key": key, "value": pair[0], "other": pair[1]} for key, pair in found.items()
        ]
    return {
        "starts": read_starts(entry.home),
        "differences": differences,
        "source": _source(entry),
    }


def _source(entry: Entry) -> dict[str, object] | None:
    starts = read_starts(entry.home)
    git = starts[-1].get("git") if starts else None
    known: Mapping[str, object] = git if isinstance(git, dict) else {}
    archive = (entry.home / "source.zip").is_file()
    if not known and not archive:
        return None
    return {"commit": known.get("commit"), "dirty": known.get("dirty"), "zip": archive}


def log_view(
    entry: Entry, before: int | None, limit: int, after: int | None = None
) -> dict[str, object]:
    """Return a part of the log, of whole lines: what ends at a position, by default at the end.

    With ``after``, what follows a position: so much of the log is known already.
    """
    most = min(max(limit, 1), MOST_LOG)
    try:
        with open_inside(entry.home, "run.log") as file:
            size = file.seek(0, 2)
            if after is not None:
                begin = min(max(after, 0), size)
                end = min(begin + most, size)
            else:
                end = size if before is None else min(max(before, 0), size)
                begin = max(0, end - most)
            file.seek(begin)
            data = file.read(end - begin)
    except FileNotFoundError:
        return {"text": "", "begin": 0, "end": 0, "size": 0}
    if after is not None:  # Half a line is left to the next question, unless there is no other.
        data = data[: data.rfind(b"\n") + 1] or (data if len(data) == most else b"")
    elif begin > 0:  # From the next whole line on, unless there is none.
        cut = data.find(b"\n") + 1
        begin, data = begin + cut, data[cut:]
    end = begin + len(data)
    return {"text": data.decode("utf-8", "replace"), "begin": begin, "end": end, "size": size}
