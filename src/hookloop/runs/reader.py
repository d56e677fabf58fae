"""Find the runs under a directory and report the status of each.

Nothing of a run is executed, imported or changed. The files may be damaged, foreign or hostile: a
run that cannot be read never hides the others.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

from hookloop.runs.identity import Parent, parent_in
from hookloop.runs.layout import RunDir
from hookloop.runs.life import Holder, Life, life_of
from hookloop.runs.lock import LOCK, is_held_here
from hookloop.runs.metrics_file import last_record

FRESH = 600.0
"""A run on another host counts as running for this many seconds after it last wrote a file."""

LONGEST = 1e10
"""A longer duration in a file, in seconds, is damage and not a run."""

UNREADABLE = "unreadable"

SWEEP = "sweep.json"
"""The file of a directory that holds the trials of a sweep."""

_SIGNS = frozenset(("summary.json", "metrics.jsonl", LOCK))
"""A directory with one of these files is a run."""


@dataclass(frozen=True)
class Best:
    """The best value that a metric had in a run."""

    metric: str
    value: float
    epoch: int
    iter: int = 0


@dataclass(frozen=True)
class RunSummary:
    """A run at a glance.

    Attributes:
        name: Its directory, relative to the one that was searched.
        path: Its directory.
        status: ``completed``, ``stopped``, ``interrupted``, ``failed``; ``running`` while its
            process is alive, ``dead`` if that was killed, ``unknown`` if it is on another host and
            has written nothing for long; ``unreadable``.
        reason: Why it ended, or how the status is known.
        epochs: Completed epochs.
        iters: Completed iterations.
        best: The best value of its main metric, by which the best checkpoint is chosen.
        started: When it started.
        seconds: How long it was trained, without pauses, up to the last time it wrote something.
        disabled: The hooks that failed and were left out.
        ranks: How many processes trained it, the last time.
        metrics: The latest value of each metric.
        bests: The best value of each metric that was watched.
        parent: The checkpoint of another run that it began with.
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
    disabled: tuple[str, ...] = ()
    ranks: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    bests: Mapping[str, Best] = field(default_factory=dict)
    parent: Parent | None = None


def list_runs(directory: str | Path) -> list[RunSummary]:
    """Summarize every run in a directory and below it, the oldest first."""
    root = Path(directory)
    runs = [summarize_safely(path, problem, root) for path, problem in find_runs(root)]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(runs, key=lambda run: (run.started or oldest, run.name))


def summarize(
    run: RunDir, root: Path | None = None, written: Mapping[str, object] | None = None
) -> RunSummary:
    """Return the summary of a run; what it has not written yet is left empty.

    Args:
        run: Its directory.
        root: The directory that was searched, to which its name is relative.
        written: What its summary file holds, if that was read already.

    Raises:
        OSError: If its summary file cannot be read.
        ValueError: If that file is not a summary.
    """
    summary = run.read_summary() if written is None else written
    last = _last_record(run)
    life, holder = _life(run)
    status, reason = _status(run, summary, life, holder)
    bests = _bests(summary.get("best"))
    return RunSummary(
        name=_name(run.path, root),
        path=run.path,
        status=status,
        reason=reason,
        epochs=_count(summary, last, "epoch"),
        iters=_count(summary, last, "iter"),
        best=_shown_best(bests, summary.get("main_metric")),
        started=read_time(summary.get("started")),
        seconds=_seconds(summary, last, is_running=status == "running"),
        disabled=_disabled(summary.get("disabled")),
        ranks=max(1, int(_number(summary.get("ranks")) or 1)),
        metrics=_metrics(summary.get("metrics")),
        bests=bests,
        parent=parent_in(summary),
    )


def trained_seconds(run: RunDir) -> float:
    """Return how many seconds a run has been trained so far, without pauses."""
    try:
        return _seconds(run.read_summary(), _last_record(run), is_running=False) or 0.0
    except (OSError, ValueError):
        return 0.0


def machine_metrics(run: RunDir) -> tuple[str, ...]:
    """Return the metrics that the hooks of a run declared as measuring the machine."""
    try:
        found = run.read_summary().get("machine")
    except (OSError, ValueError):  # A run without a readable summary has its metrics all the same.
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def find_runs(root: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield the directories of runs, each with None or with the reason why it cannot be read.

    A run has no other run inside it, so its own directories are not searched.
    """
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        folders, is_run, is_sweep = [], False, False
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name
                    is_run = is_run or name in _SIGNS
                    is_sweep = is_sweep or name == SWEEP
                    # A link could lead in a circle, or out of the directory.
                    if not name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        folders.append(name)
        except FileNotFoundError:  # It was deleted meanwhile.
            continue
        except OSError as error:
            yield directory, error.strerror or str(error)
            continue
        # A sweep is locked while it works, and its trials are runs.
        if is_run and not is_sweep:
            yield directory, None
        else:
            waiting += [directory / name for name in folders]


def summarize_safely(
    path: Path, problem: str | None, root: Path, written: Mapping[str, object] | None = None
) -> RunSummary:
    """Return the summary of what `find_runs` found; whatever is wrong with it is in its reason."""
    if problem is None:
        try:
            return summarize(RunDir(path), root, written)
        except Exception as error:  # noqa: BLE001 - whatever a file holds, the other runs are shown
            problem = str(error) if isinstance(error, ValueError) else ""
            problem = problem or getattr(error, "strerror", None) or str(error)
    return RunSummary(_name(path, root), path, UNREADABLE, problem, 0, 0, None, None, None)


def _name(path: Path, root: Path | None) -> str:
    relative = relative_to(path, root) if root is not None else str(path)
    return path.resolve().name if relative == "." else relative


def relative_to(path: Path, root: Path) -> str:
    """Return where a path is below a directory.

    >>> relative_to(Path("runs/a/b"), Path("runs")), relative_to(Path("runs"), Path("runs"))
    ('a/b', '.')
    """
    text, start = str(path), f"{root}{os.sep}"
    # The usual case; `relpath` takes as long as the rest of what is done for a run.
    return text[len(start) :] if text.startswith(start) else os.path.relpath(path, root)


def _last_record(run: RunDir) -> dict[str, object]:
    try:
        return last_record(run.metrics_file)
    except OSError:  # It is missing or cannot be read: the summary is enough.
        return {}


def holder_of(run: RunDir) -> Holder | None:
    """Return the process that trains in a directory, as its lock names it."""
    return _life(run)[1]


def _life(run: RunDir) -> tuple[Life, Holder | None]:
    lock = run.path / LOCK
    return ("alive", Holder.this()) if is_held_here(lock) else life_of(lock)


def _status(
    run: RunDir, summary: Mapping[str, object], life: Life, holder: Holder | None
) -> tuple[str, str]:
    """Return whether a run is running, or how it ended, and the reason."""
    found = summary.get("status")
    written = found if isinstance(found, str) else ""
    # The lock before the summary: a resumed run may still have its earlier summary.
    if life == "alive":
        return "running", ""
    if written and written != "running":
        return written, str(summary.get("reason") or "")
    if life == "none" and not written:
        return "unknown", "nothing shows its status"
    if life != "unknown":
        return "dead", f"{holder or 'its process'} is gone"
    return _status_elsewhere(run, holder)


def _status_elsewhere(run: RunDir, holder: Holder | None) -> tuple[str, str]:
    """Return the status of a run on another host, from when it last wrote something."""
    if holder is None:
        return "unknown", "its lock cannot be read"
    silence = time() - _last_sign(run)
    if silence < FRESH:
        return "running", f"on {holder.host}"
    return "unknown", f"no sign of life from {holder} for {timedelta(seconds=round(silence))}"


def _last_sign(run: RunDir) -> float:
    """Return when a file of a run was last written."""
    times = [0.0]
    for file in (run.summary_file, run.metrics_file, run.log_file, run.path / LOCK):
        try:
            status = os.lstat(file)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            times.append(status.st_mtime)
    return max(times)


def _count(summary: Mapping[str, object], last: Mapping[str, object], name: str) -> int:
    # The last record may be newer than the summary, or the other way round.
    counts = [_number(source.get(name)) for source in (summary, last)]
    return int(max((count for count in counts if count is not None), default=0))


def _metrics(value: object) -> dict[str, float]:
    """Return the numbers of a mapping, also those that are not finite."""
    entries = value.items() if isinstance(value, Mapping) else ()
    return {str(name): float(one) for name, one in entries if _is_metric(one)}


def _is_metric(value: object) -> bool:
    return isinstance(value, float) or _number(value) is not None


def _bests(value: object) -> dict[str, Best]:
    entries = value.items() if isinstance(value, Mapping) else ()
    found: dict[str, Best] = {}
    for name, entry in entries:
        number = _number(entry.get("value")) if isinstance(entry, Mapping) else None
        if number is not None:
            epoch, iteration = (int(_number(entry.get(key)) or 0) for key in ("epoch", "iter"))
            found[str(name)] = Best(str(name), number, epoch, iteration)
    return found


def _shown_best(found: Mapping[str, Best], main: object) -> Best | None:
    """Return the best value of the metric to show.

    That is the main metric, by which the best checkpoint is chosen. A run without one shows its
    first metric that is not a loss, or its first.
    """
    if isinstance(main, str) and main in found:
        return found[main]
    name = next((name for name in found if "loss" not in name), next(iter(found), None))
    return None if name is None else found[name]


def _disabled(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    names = [str(entry.get("hook")) for entry in value if isinstance(entry, Mapping)]
    return tuple(dict.fromkeys(names))


def _seconds(
    summary: Mapping[str, object], last: Mapping[str, object], *, is_running: bool
) -> float | None:
    """Return how long a run has taken: the seconds in the summary, and the time after it."""
    found = _time_taken(summary, last, is_running=is_running)
    return found if found is not None and 0 <= found < LONGEST else None


def _time_taken(
    summary: Mapping[str, object], last: Mapping[str, object], *, is_running: bool
) -> float | None:
    before, written = _number(summary.get("seconds")), read_time(summary.get("written"))
    started, ended = read_time(summary.get("started")), read_time(summary.get("ended"))
    now = datetime.now(UTC) if is_running else read_time(last.get("time"))
    if before is None or written is None:  # An older version wrote neither.
        ended = ended or now
        return (ended - started).total_seconds() if started and ended else None
    if ended is not None or now is None:
        return before
    return before + max(0.0, (now - written).total_seconds())


def _number(value: object) -> float | None:
    """Return a finite number of plausible size, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e18 and math.isfinite(value) else None


def read_time(value: object) -> datetime | None:
    """Return a time that a file holds as text or in seconds since 1970; None for anything else."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
        elif (number := _number(value)) is not None:
            read = datetime.fromtimestamp(number, UTC)
        else:
            return None
        aware = read if read.tzinfo else read.replace(tzinfo=UTC)
        return aware if aware.year in range(1970, 3000) else None
    except (ValueError, OverflowError, OSError):
        return None
