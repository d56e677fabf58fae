"""A run as the page shows it: its row in the table, and its overview."""

from __future__ import annotations

import gzip
import json
import math
import operator
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from hookloop import __version__ as VERSION
from hookloop.runs import SWEEP_FILE as SWEEP
from hookloop.runs import (
    Rule,
    RunRow,
    differing_keys,
    has_secrets,
    is_of_machine,
    make_safe_line,
    read_starts,
    rule_of,
    to_json,
)
from hookloop_board.collection import Collection, Entry
from hookloop_board.files import open_inside

MOST_WARNINGS = 20
LOG_TAIL = 262_144
"""Bytes at the end of the log in which warnings are looked for."""

MOST_METRICS = 200
"""How many metrics a row has."""

_WARNING = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  (?:warning|error): (.*)")
_SPEED = re.compile(r"train/((?:iter|data)_time|.*_per_second|time_per_sample|mfu)")
_MEMORY = "train/memory/"
MIB = 1 << 20
"""Memory is recorded in MiB, and shown from bytes."""

_STARTED = ("iter", "time", "command", "host", "git", "directory", "python", "hookloop", "ranks")


def list_view(collection: Collection, *, can_change: bool) -> dict[str, object]:
    """Return the answer to ``/api/runs``."""
    entries = list(collection.entries().values())
    return {
        **_about(collection, entries, can_change=can_change),
        "runs": [row_view(one) for one in entries],
    }


class ListAnswer:
    """The answer to ``/api/runs`` as it is sent, made again only of what has changed.

    Args:
        collection: The runs.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._made: tuple[list[RunRow], bytes, bytes] = ([], b"", b"")

    def bytes(self) -> tuple[bytes, bytes]:
        """Return the JSON, and the same compressed."""
        entries = list(self._collection.entries().values())
        rows = [one.row for one in entries]
        known, data, small = self._made
        if not data or len(known) != len(rows) or not all(map(operator.is_, known, rows)):
            about = to_json(_about(self._collection, entries, can_change=True))
            runs = ", ".join(_row_json(one) for one in entries)
            data = f'{about[:-1]}, "runs": [{runs}]}}'.encode("utf-8", "replace")
            small = gzip.compress(data, 1)
            self._made = (rows, data, small)
        return data, small


def _row_json(entry: Entry) -> str:
    """Return a run as JSON; it is kept as long as the row is the same."""
    kept = entry.kept.get("row")
    if isinstance(kept, tuple) and kept[0] is entry.row:
        return str(kept[1])
    row, view = entry.row, row_view(entry)
    text = to_json(view) if has_secrets() else _quick_json(view)
    entry.kept["row"] = (row, text)
    return text


def _quick_json(view: Mapping[str, object]) -> str:
    """Return plain values as JSON, without a look at each of them where none needs it."""
    try:
        return json.dumps(view, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError):  # A number that JSON lacks, a date of a config.
        return to_json(view)


def _about(
    collection: Collection, entries: Sequence[Entry], *, can_change: bool
) -> dict[str, object]:
    metrics = dict.fromkeys(name for one in entries for name in one.summary.metrics)
    declared = {pattern for one in entries for pattern in _declared(one)}
    return {
        "version": 1,
        "hookloop": VERSION,
        "roots": [str(root) for root in collection.roots],
        "can_change": can_change,
        "differing": differing_keys([one.row for one in entries]),
        "metrics": list(metrics),
        **_judged(metrics, declared),
    }


def _judged(names: Iterable[str], declared: AbstractSet[str]) -> dict[str, object]:
    """Return what the page has to know of metrics, so that it judges them as everything else does.

    Which of them measure the machine, and of which more is better or less.
    """
    kept = [name for name in names if not is_of_machine(name, declared)]
    rules: dict[str, Rule | None] = {name: rule_of(name) for name in kept}
    return {
        "machine": [name for name in names if name not in rules],
        "better": {name: rule for name, rule in rules.items() if rule is not None},
    }


def _declared(entry: Entry) -> list[str]:
    """Return the names and patterns that the hooks of a run declared as measuring the machine."""
    found = entry.extra.get("machine")
    return [str(one) for one in found] if isinstance(found, list) else []


def row_view(entry: Entry) -> dict[str, object]:
    """Return a run as a row of the table."""
    run, labels = entry.summary, entry.row.labels
    total_iters, total_epochs = totals_of(entry)
    sweep, trial = _trial(entry)
    return {
        "id": entry.id,
        "name": make_safe_line(entry.name),
        "root": entry.root,
        "status": run.status,
        "reason": make_safe_line(run.reason),
        "started": run.started.isoformat() if run.started else None,
        "seconds": run.seconds,
        "iters": run.iters,
        "epochs": run.epochs,
        "total_iters": total_iters,
        "total_epochs": total_epochs,
        "remaining": _remaining(entry, total_iters, total_epochs),
        "ranks": run.ranks,
        "metrics": dict(list(run.metrics.items())[:MOST_METRICS]),
        "bests": {
            name: {"value": best.value, "iter": best.iter, "epoch": best.epoch}
            for name, best in run.bests.items()
        },
        "main_metric": _main_metric(entry),
        "config": dict(entry.row.config),
        "tags": list(labels.tags),
        "note": labels.note,
        "disabled": list(run.disabled),
        "sweep": sweep,
        "trial": trial,
    }


def run_view(collection: Collection, entry: Entry, patience: float = math.inf) -> dict[str, object]:
    """Return the overview of a run, after ``patience`` seconds with what is read by then."""
    file = collection.metrics(entry, monotonic() + patience)
    extra, run = entry.extra, entry.summary
    latest = file.latest()
    series = file.describe()
    # As long as the file is read, the summary is newer; so it is where a process was killed before
    # it had written its last lines.
    newest = max((int(str(one["last"])) for one in series), default=0)
    written = extra.get("iter")
    is_newer = file.is_behind or (isinstance(written, int) and written > newest)
    values = {**latest, **run.metrics} if is_newer else {**run.metrics, **latest}
    done = {name: extra.get(name) for name in ("samples", "tokens") if _is_number(extra.get(name))}
    shown = dict(list(values.items())[:MOST_METRICS])
    return {
        **row_view(entry),
        "metrics": shown,
        **_judged(shown, set(_declared(entry))),
        "progress": {"iter": run.iters, "epoch": run.epochs, **done},
        "command": resume_command(entry),
        "has_config": entry.has_config,
        "path": make_safe_line(str(entry.home)),
        "speed": {
            found[1]: value for name, value in values.items() if (found := _SPEED.fullmatch(name))
        },
        "memory": {
            name.removeprefix(_MEMORY): value * MIB
            for name, value in values.items()
            if name.startswith(_MEMORY)
        },
        "warnings": warnings_of(entry.home),
        "starts": [
            {name: one[name] for name in _STARTED if name in one} | {"git": one.get("git")}
            for one in read_starts(entry.home)
        ],
        "changes": _mappings(extra.get("changes")),
        "problem": {"text": str(extra["problem"])} if extra.get("problem") else None,
        "disabled_hooks": _mappings(extra.get("disabled")),
        "series": series,
    }


def warnings_of(home: Path) -> list[dict[str, object]]:
    """Return the last warnings and errors in the log of a run."""
    try:
        with open_inside(home, "run.log") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LOG_TAIL))
            text = file.read(LOG_TAIL).decode("utf-8", "replace")
    except OSError:
        return []
    matches = (_WARNING.match(line) for line in text.split("\n"))
    found: list[dict[str, object]] = [
        {"time": _local_time(one[1]), "text": make_safe_line(one[2], 2000)}
        for one in matches
        if one is not None
    ]
    return found[-MOST_WARNINGS:]


def resume_command(entry: Entry) -> str | None:
    """Return what continues a run, from any directory.

    Nothing while it is running, when its directory is locked, and without a config to build.
    """
    if not entry.has_config or entry.summary.status == "running":
        return None
    return f"hookloop resume {quote(entry.home.absolute())}"


def quote(path: Path) -> str:
    """Return a path for a shell; one that begins with a dash is not taken as an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def totals_of(entry: Entry) -> tuple[int | None, int | None]:
    """Return how many iterations and epochs the whole run has, as far as that is known."""
    extra, config = entry.extra, entry.row.config
    found = []
    for name in ("iters", "epochs"):
        # Runs of an earlier version have it in their config alone.
        value = extra.get(f"total_{name}", config.get(f"max_{name}"))
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1e15
        found.append(value if is_count and isinstance(value, int) else None)
    return found[0], found[1]


def _remaining(entry: Entry, iters: int | None, epochs: int | None) -> float | None:
    run = entry.summary
    if run.status != "running" or not run.seconds:
        return None
    if iters is not None and run.iters:
        return max(0.0, run.seconds / run.iters * (iters - run.iters))
    if epochs is not None and run.epochs:
        return max(0.0, run.seconds / run.epochs * (epochs - run.epochs))
    return None


def _main_metric(entry: Entry) -> str | None:
    given = entry.extra.get("main_metric")
    if isinstance(given, str):
        return given
    best = entry.summary.best
    if best is not None:
        return best.metric
    declared = _declared(entry)
    names = [name for name in entry.summary.metrics if not is_of_machine(name, declared)]
    usual = [name for name in names if name == "train/loss"]
    return next((name for name in names if name.startswith("val/")), next(iter(usual), None))


def _trial(entry: Entry) -> tuple[str | None, int | None]:
    """Return the sweep that a run belongs to, and its number in it."""
    found = re.fullmatch(r"trial_(\d{1,9})", entry.home.name)
    folder = entry.home.parent
    if found is None:  # With folds, the runs of a trial are one level deeper.
        found, folder = re.fullmatch(r"trial_(\d{1,9})", folder.name), folder.parent
    if found is None or not (folder / SWEEP).is_file():
        return None, None
    return sweep_id(folder), int(found[1])


def sweep_id(folder: Path) -> str:
    """Return the ID of a sweep, from where it is."""
    from hookloop_board.collection import run_id

    return run_id(folder.resolve(), "sweep")


def _mappings(value: object) -> list[Mapping[str, object]]:
    found = value if isinstance(value, list) else []
    return [one for one in found if isinstance(one, dict)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _local_time(text: str) -> str | None:
    try:  # The log has the time of its host, which is most often this one.
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
