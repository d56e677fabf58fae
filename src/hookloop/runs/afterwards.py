"""``afterwards.jsonl``: metrics of iterations long past, which replays have recorded.

It is a file of its own, because the run itself did not record them: a resume would drop the lines,
and the comparison of two runs would find them in one only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import monotonic, sleep
from time import time as now

from hookloop.errors import RunExistsError
from hookloop.runs.files import write_text
from hookloop.runs.interventions import other_ways
from hookloop.runs.layout import RunDir
from hookloop.runs.lock import RunLock
from hookloop.runs.metrics_file import STAMPS, records
from hookloop.runs.reader import read_time
from hookloop.runs.records import to_json

LOCK = ".afterwards.lock"
PATIENCE = 30.0
"""Seconds for which another replay may hold the file; it takes milliseconds."""

_OTHERS = (*STAMPS, "by", "branch")


def add_afterwards(
    run: RunDir, lines: Sequence[Mapping[str, object]], by: Mapping[str, object], *, branch: int
) -> list[str]:
    """Add lines; a number that was there for the same iteration is replaced.

    Args:
        run: The run.
        lines: As those of ``metrics.jsonl``, without the time.
        by: Which hooks recorded them, and how.
        branch: How often the run had gone back by then.

    Returns:
        The names of the metrics.
    """
    names = list(dict.fromkeys(name for line in lines for name in line if name not in _OTHERS))
    if not names:
        return []
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    new = [{"time": now(), **line, "branch": branch, "by": {**by, "time": time}} for line in lines]
    taken = {(_place(line), name) for line in new for name in line}
    with _locked(run):
        old = []
        for line in records(run.afterwards_file, is_lenient=True):
            kept = {
                name: value
                for name, value in line.items()
                if name in _OTHERS or (_place(line), name) not in taken
            }
            if kept.keys() - {*_OTHERS}:
                old.append(kept)
        text = "".join(f"{to_json(line)}\n" for line in [*old, *new])
        write_text(run.afterwards_file, text)
    return names


def read_afterwards(run: RunDir) -> Iterator[dict[str, object]]:
    """Yield the lines that are still true: the run has not made other iterations in their place.

    Damaged lines are left out.
    """
    if not run.afterwards_file.is_file():
        return
    others = list(other_ways(run))
    for line in records(run.afterwards_file, is_lenient=True):
        by, iteration = line.get("by"), line.get("iter")
        written = read_time(by.get("time")) if isinstance(by, Mapping) else None
        if not isinstance(iteration, int) or written is None:
            continue
        if not any(iteration > begun and time > written for begun, time in others):
            yield line


def _place(line: Mapping[str, object]) -> tuple[object, ...]:
    return line.get("iter"), line.get("phase"), line.get("span")


@contextmanager
def _locked(run: RunDir) -> Iterator[None]:
    """Hold the lock of this file, which a training does not need."""
    lock, until = RunLock(run.path, LOCK), monotonic() + PATIENCE
    while True:
        try:
            lock.take()
            break
        except RunExistsError:
            if monotonic() > until:
                raise
            sleep(0.05)
    try:
        yield
    finally:
        lock.give_back()
