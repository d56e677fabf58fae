"""Find the runs under a directory and tell how each of them stands."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hookloop.runs.layout import RunDir


@dataclass(frozen=True)
class Best:
    """The best value that a metric had in a run."""

    metric: str
    value: float
    epoch: int


@dataclass(frozen=True)
class RunSummary:
    """A run at a glance.

    Attributes:
        name: Its directory, relative to where it was looked for.
        path: Its directory.
        status: ``completed``, ``stopped``, ``interrupted``, ``failed``; ``running`` before the end,
            also when a run was killed and could not say so.
        reason: Why it ended, if it says.
        epochs: Completed epochs.
        iters: Completed iterations.
        best: The best value of its first watched metric.
        started: When it began.
        seconds: From its beginning to its end, or to its last sign of life.
    """

    name: str
    path: Path
    status: str
    reason: str
    epochs: int
    iters: int
    best: Best | None
    started: datetime | None
    seconds: float | None


def list_runs(directory: str | Path) -> list[RunSummary]:
    """Summarize every run in a directory and below it, the oldest first."""
    root = Path(directory)
    runs = [summarize(RunDir(path), root) for path in _find(root)]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(runs, key=lambda run: (run.started or oldest, run.name))


def summarize(run: RunDir, root: Path | None = None) -> RunSummary:
    """Read how a run stands; what it has not written yet is left empty."""
    summary = _read_summary(run)
    last = _last_record(run)
    started = _time(summary.get("started"))
    ended = _time(summary.get("ended")) or _time(last.get("time"))
    relative = os.path.relpath(run.path, root) if root is not None else str(run.path)
    return RunSummary(
        name=run.path.name if relative == "." else relative,
        path=run.path,
        status=str(summary.get("status") or "running"),
        reason=str(summary.get("reason") or ""),
        epochs=_count(summary, last, "epoch"),
        iters=_count(summary, last, "iter"),
        best=_best(summary.get("best")),
        started=started,
        seconds=(ended - started).total_seconds() if started and ended else None,
    )


def _find(root: Path) -> Iterator[Path]:
    """Walk down to the directories of runs; inside one, there is no other."""
    run = RunDir(root)
    if run.summary_file.is_file() or run.metrics_file.is_file():
        yield root
        return
    if root.is_dir():
        for entry in sorted(root.iterdir()):
            if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
                yield from _find(entry)


def _read_summary(run: RunDir) -> dict[str, object]:
    try:
        return run.read_summary()
    except ValueError:  # A foreign or damaged file must not hide the other runs.
        return {"status": "unreadable"}


def _last_record(run: RunDir) -> dict[str, object]:
    last: dict[str, object] = {}
    try:
        for record in run.read_metrics():
            last = record
    except (json.JSONDecodeError, UnicodeDecodeError):
        return last
    return last


def _count(summary: Mapping[str, object], last: Mapping[str, object], name: str) -> int:
    counts = [source.get(name) for source in (summary, last)]
    return int(max((count for count in counts if isinstance(count, int | float)), default=0))


def _best(value: object) -> Best | None:
    """Choose the metric to show: a score says more than a loss, and the first is the main one."""
    if not isinstance(value, Mapping) or not value:
        return None
    name = next((name for name in value if "loss" not in str(name)), next(iter(value)))
    entry = value[name]
    if not isinstance(entry, Mapping) or not isinstance(entry.get("value"), int | float):
        return None
    return Best(str(name), float(entry["value"]), int(entry.get("epoch") or 0))


def _time(value: object) -> datetime | None:
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str) or not value:
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
