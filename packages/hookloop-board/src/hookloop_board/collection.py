"""The runs of some directories: found, summarized, and kept until one of their files changes."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import cast

from hookloop import HookloopError
from hookloop.runs import LABELS_FILE as TAGS
from hookloop.runs import RUN_LOCK as LOCK
from hookloop.runs import (
    Past,
    RunDir,
    RunRow,
    RunSummary,
    find_runs,
    past_of,
    reject_links,
    relative_to,
    row_of,
    summarize_safely,
)
from hookloop_board.files import Stamp, stamp_of
from hookloop_board.metrics_file import MetricsFile, Points

FRESH = 0.5
"""Seconds for which the list of runs is taken as it is."""

QUICK = 0.3
"""Seconds that questions wait for a look; on a slow disk they get what the last one has found."""

REST = 1.0
"""How long a slow disk is left alone after a look, in times of what that took."""

MOST_OPEN = 200
MOST_VALUES = 60_000_000
"""How many runs, and how many numbers of them, are kept in memory."""

CONFIGS = ("config.yaml", "trained_with.yaml")
"""What a run was trained with: the config, and what a script without a whole one has used."""

METRICS = "metrics.jsonl"

WATCHED = ("summary.json", METRICS, LOCK, *CONFIGS, TAGS)
"""The files of a run that are looked at again."""

LIVE = ("running", "unknown", "dead")
"""States that change without a file: a process dies, or a clock passes."""


class NotFound(HookloopError):
    """What was asked for is not there."""


@dataclass
class Entry:
    """A run of the collection.

    Attributes:
        id: Sixteen digits that stand for it; they are the same after a restart.
        root: Which of the directories it was found in.
        home: Its directory.
        name: What it is called: its path in that directory, or with it where others have the same.
        row: Its summary, config and labels.
        extra: What the summary file has besides.
        kept: What others computed of it; emptied when one of its files changes.
    """

    id: str
    root: int
    home: Path
    name: str
    row: RunRow
    extra: Mapping[str, object]
    stamps: Mapping[str, Stamp | None]
    kept: dict[str, object] = field(default_factory=dict)

    @property
    def dir(self) -> RunDir:
        """Its directory, to read."""
        return RunDir(self.home)

    @property
    def has_config(self) -> bool:
        """Whether it has a config to build; what a script has used is there to compare only."""
        return self.stamps["config.yaml"] is not None

    @property
    def summary(self) -> RunSummary:
        """How it stands."""
        return self.row.run


class Collection:
    """All runs in some directories and below them.

    Nothing that a client sends becomes a path: an ID is looked up among what was found here.

    Args:
        roots: The directories.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = list(roots)
        self._entries: dict[str, Entry] = {}
        self._files: OrderedDict[str, MetricsFile] = OrderedDict()
        self._looked = -math.inf
        self._took = 0.0
        self._lock = Lock()
        self._files_lock = Lock()

    def entries(self, *, fresh: float = FRESH, waits: bool = False) -> dict[str, Entry]:
        """Return the runs by ID, the oldest first; looked up again after some time.

        Args:
            fresh: Seconds after which they are looked up again; on a slow disk it may be later.
            waits: Whether to wait for a slow disk. Otherwise, what was found last is returned, and
                a thread looks again.
        """
        is_slow = self._took > QUICK
        if monotonic() - self._looked < (max(fresh, REST * self._took) if is_slow else fresh):
            return self._entries
        if is_slow and not waits:
            if not self._lock.locked():
                Thread(target=self.entries, kwargs={"waits": True}, daemon=True).start()
            return self._entries
        with self._lock:
            began = monotonic()
            if began - self._looked >= fresh:
                found = dict(self._look())
                self._name(found.values())
                self._entries = dict(sorted(found.items(), key=lambda pair: _order(pair[1])))
                self._looked = monotonic()
                self._took = self._looked - began
            return self._entries

    def entry(self, number: str) -> Entry:
        """Return a run by its ID.

        Raises:
            NotFound: If there is none.
        """
        found = self.entries().get(number)
        if found is None:
            raise NotFound("There is no such run; it may have been deleted. Load the page again.")
        # It may have been replaced by a link since it was found.
        reject_links(found.home, self.roots[found.root])
        return found

    def look_again(self, entry: Entry) -> None:
        """Read a run that was changed just now, so that the next answer has it.

        The others are as they were found; on a slow disk a look at all of them takes its time.
        """
        with self._lock:
            if entry.id in self._entries:
                again = self._entry(entry.id, entry.root, entry.home, None)
                self._entries = {**self._entries, entry.id: again}

    def metrics(self, entry: Entry, until: float = math.inf) -> MetricsFile:
        """Return the metrics of a run, with what was written last, as far as there was time."""
        with self._files_lock:
            file = self._files.setdefault(entry.id, MetricsFile(entry.dir.metrics_file))
            self._files.move_to_end(entry.id)
            while len(self._files) > 1 and (
                len(self._files) > MOST_OPEN
                or sum(one.count for one in self._files.values()) > MOST_VALUES
            ):
                self._files.popitem(last=False)
        file.update(until)
        return file

    def past(self, entry: Entry, name: str, until: float = math.inf) -> list[Points]:
        """Return the values of a metric that a fork shares with those that it comes from."""
        if entry.summary.parent is None:
            return []
        # Only kept until a file of the run changes: the parent may be trained meanwhile.
        past = cast("Past", entry.kept.setdefault("past", past_of(entry.dir)))
        found = []
        for one in past.lines:
            with self._files_lock:
                file = self._files.setdefault(f"past {one.file}", MetricsFile(one.file))
            file.update(until)
            points = file.points(name)
            if points is not None:
                found.append(points.between(one.after, one.until))
        return found

    def _name(self, entries: Iterable[Entry]) -> None:
        """Tell runs of one name apart by their directories."""
        count = Counter(one.summary.name for one in entries)
        for one in entries:
            name = one.summary.name
            if count[name] > 1:
                name = f"{self.roots[one.root]}/{name}"
            if one.name != name:
                one.name = name
                one.row = replace(one.row)  # What was made of it has the old name.

    def _look(self) -> Iterator[tuple[str, Entry]]:
        seen: set[str] = set()
        for number, root in enumerate(self.roots):
            if not root.is_dir():
                continue
            real = root.resolve()
            for path, problem in find_runs(root):
                relative = relative_to(path, root)
                place = os.path.normpath(os.path.join(real, relative))
                if place in seen or (problem is not None and path == root):
                    continue
                seen.add(place)
                identity = run_id(real, relative)
                yield identity, self._entry(identity, number, path, problem)

    def _entry(self, identity: str, root: int, path: Path, problem: str | None) -> Entry:
        home = str(path)  # Joined as text: paths would take most of the time of a look.
        stamps = {name: stamp_of(f"{home}{os.sep}{name}") for name in WATCHED}
        old = self._entries.get(identity)
        if old is not None and old.stamps == stamps:
            if old.summary.status not in LIVE:
                return old
            summary = summarize_safely(path, problem, self.roots[root])
            old.row = RunRow(summary, old.row.config, old.row.labels)
            return old
        written = _written(RunDir(path))
        summary = summarize_safely(path, problem, self.roots[root], written)
        # The config is the slowest to read, and never changes while a run is trained.
        is_same = old is not None and all(old.stamps[name] == stamps[name] for name in CONFIGS)
        config = old.row.config if old is not None and is_same else None
        row = row_of(summary, config)
        name = old.name if old is not None else summary.name
        return Entry(identity, root, path, name, row, written or {}, stamps)


def run_id(root: Path, relative: str) -> str:
    """Return the ID of a run, from where it is."""
    text = f"{root}\0{relative}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]


def _written(run: RunDir) -> Mapping[str, object] | None:
    """Return the summary file of a run; None if it cannot be read, which the reader explains."""
    try:
        return run.read_summary()
    except (OSError, ValueError):
        return None


def _order(entry: Entry) -> tuple[float, str]:
    started = entry.summary.started
    return (started.timestamp() if started else 0.0, entry.summary.name)
