"""The way to an iteration of a run: from which checkpoint, and by which stretches of its record.

A run is a chain of stretches. Each begins with a start or a rewind, and within one everything
follows from its config and limits, but for settings that were changed and validations that were
asked for. What was abandoned, because the run began again or went back before it, is not a part of
it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import dropwhile, pairwise
from pathlib import Path
from statistics import median
from typing import cast

from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import is_checkpoint_directory
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.runs.identity import Parent, read_identity
from hookloop.runs.interventions import read_interventions
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import find_parent
from hookloop.runs.metrics_file import records

Line = Mapping[str, object]

MEASURED = 20
"""How many pairs of lines of metrics the time of an iteration is taken from."""


class ReplayError(HookloopError):
    """An iteration that cannot be repeated exactly, with the reason."""


@dataclass(frozen=True)
class Stretch:
    """A part of a run between two starts, or rewinds.

    Attributes:
        start: The line of the start that it belongs to.
        first: The iteration that was completed when it begins.
        last: The iteration after which it ends.
        change: What this start changed on purpose.
        limits: How far the training was to go, which schedules may depend on.
        rewind: The line of the rewind with which it begins.
        changed: The settings that were changed while it was trained, by iteration.
        validated: The streams that were validated because somebody asked, by iteration.
    """

    start: Line
    first: int
    last: int
    change: tuple[str, ...] = ()
    limits: Mapping[str, int | None] = field(default_factory=dict)
    rewind: Line | None = None
    changed: Mapping[int, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    validated: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """The way to some iterations of a run.

    Attributes:
        run: The run.
        first: The first iteration that is asked for.
        last: The last one, after which the replay ends.
        checkpoint: Where it begins; None for the beginning of the run.
        stretches: What is trained, in order.
        checkpoints: The checkpoints that the run saved on the way.
        branch: How often the run had gone back by then.
    """

    run: RunDir
    first: int
    last: int
    checkpoint: Saved | None
    stretches: Sequence[Stretch]
    checkpoints: Sequence[Saved] = ()
    branch: int = 0

    @property
    def begun(self) -> int:
        """The iteration that is completed where it begins."""
        return _begun(self.checkpoint)

    @property
    def iters(self) -> int:
        """How many iterations are trained."""
        return self.last - self.begun

    @property
    def origin(self) -> str:
        """Where it begins, for people."""
        return "the beginning" if self.checkpoint is None else self.checkpoint.name

    def seconds_per_iter(self) -> float | None:
        """Return how long an iteration took in this run, with all that hooks did; None if unknown.

        The lines of the metrics have the time at which they were written.
        """
        times: list[tuple[int, float]] = []
        for record in records(self.run.metrics_file, is_lenient=True):
            iteration, time = record.get("iter"), record.get("time")
            if record.get("phase") == "train" and isinstance(iteration, int):
                times.append((iteration, float(cast("float", time or 0.0))))
        steps = [
            ((after - before) / (there - here), abs(there - self.last))
            for (here, before), (there, after) in pairwise(times)
            if there > here and after >= before
        ]
        near = sorted(steps, key=lambda step: step[1])[:MEASURED]
        return median(seconds for seconds, _ in near) if near else None


def parse_span(text: str | int | Sequence[int]) -> tuple[int, int]:
    """Read an iteration, or the first and the last of several.

    >>> parse_span(7), parse_span("1200:1300"), parse_span(range(3, 6))
    ((7, 7), (1200, 1300), (3, 5))
    """
    try:
        if isinstance(text, str):
            first, colon, last = text.partition(":")
            span = (int(first), int(last if colon else first))
        elif isinstance(text, int):
            span = (text, text)
        else:
            span = (int(text[0]), int(text[-1]))
    except (ValueError, TypeError, IndexError) as error:
        raise HookloopError(f"{text!r} is not an iteration: write 1234 or 1200:1300.") from error
    if not 1 <= span[0] <= span[1]:
        raise HookloopError(
            f"{text!r} names no iterations: the first one is 1, and the second number must not be "
            "smaller than the first."
        )
    return span


def find_routes(
    run_dir: str | Path, first: int, last: int, stores: Iterable[str] = ()
) -> list[Route]:
    """Return the ways to some iterations, the shortest first: one from each checkpoint.

    Args:
        run_dir: The run.
        first: The first iteration.
        last: The last one.
        stores: Where else the run keeps checkpoints.

    Raises:
        ReplayError: If there is none.
    """
    run = RunDir(Path(run_dir))
    parent = read_identity(run).parent
    if parent is not None and parent.iter is not None and first <= parent.iter:
        return _routes_of_parent(run, parent, first, last)
    if not run.interventions_file.is_file():
        raise ReplayError(
            f"'{run_dir}' cannot be replayed: it has no interventions.jsonl, which says how it was "
            "trained. Runs of an older version have none."
        )
    known = dropwhile(lambda line: line["what"] != "start", read_interventions(run))
    lines = present_branch(known)
    bounds = [line for line in lines if line["what"] in ("start", "rewind")]
    if not bounds:
        raise ReplayError(f"'{run_dir}' cannot be replayed: its record has no start.")
    done = completed(run, lines)
    if last > done:
        raise ReplayError(
            f"'{run_dir}' has no iteration {last}: {count_of(done, 'iteration')} are done."
        )
    saved = [one for one in _listed(run, stores) if is_of_branch(one, bounds)]
    saved.sort(key=lambda one: (one.iter, one.time), reverse=True)
    branch = sum(line["what"] == "rewind" and _iter(line) < last for line in bounds)
    routes = [
        Route(
            run, first, last, one, _Way(one, last).take(lines),
            [other for other in saved if _begun(one) < other.iter <= last], branch,
        )
        for one in [*(one for one in saved if one.iter < first), None]
        if one is not None or _has_seed(bounds[0])
    ]  # fmt: skip
    if not routes:
        raise ReplayError(
            f"'{run_dir}' cannot be replayed at iteration {first}: it has no seed, and no "
            f"checkpoint before that iteration ({_known(saved)}). SaveCheckpoint(keep_every=...) "
            "keeps some forever."
        )
    return routes


def find_saved(run_dir: str | Path, iteration: int, stores: Iterable[str] = ()) -> Saved | None:
    """Return the last checkpoint of an iteration, on the present branch; None without one."""
    run = RunDir(Path(run_dir))
    lines = present_branch(read_interventions(run))
    bounds = [line for line in lines if line["what"] in ("start", "rewind")]
    found = [
        one for one in _listed(run, stores) if one.iter == iteration and is_of_branch(one, bounds)
    ]
    return max(found, key=lambda one: one.time, default=None)


def start_at(run_dir: str | Path, iteration: int) -> Stretch | None:
    """Return the stretch of a run's record in which an iteration was made, the last one that fits.

    None for a run without a record.
    """
    known = present_branch(read_interventions(RunDir(Path(run_dir))))
    lines = dropwhile(lambda line: line["what"] != "start", known)
    stretches = _Way(None, max(iteration, 1)).take(lines)
    return stretches[-1] if stretches else None


def present_branch(lines: Iterable[Line]) -> list[Line]:
    """Return the lines that led to where the run is now, without what it has abandoned."""
    branch: list[Line] = []
    for line in lines:
        if line["what"] in ("start", "rewind"):
            branch = [one for one in branch if _iter(one) <= _iter(line)]
        branch.append(line)
    return branch


def is_of_branch(saved: Saved, bounds: Iterable[Line]) -> bool:
    """Return whether a checkpoint is of the present branch: the run was not before it since."""
    return not any(_iter(line) < saved.iter and _time(line) > saved.time for line in bounds)


def _routes_of_parent(run: RunDir, parent: Parent, first: int, last: int) -> list[Route]:
    """Return the ways to iterations before a fork, which another run has made."""
    begun = cast("int", parent.iter)
    if last > begun:
        raise ReplayError(
            f"'{run.path}' began at iteration {begun}, and another run made those before: ask for "
            f"{first}:{begun} and for {begun + 1}:{last}."
        )
    home = find_parent(run, parent)
    if home is None:
        raise ReplayError(
            f"'{run.path}' began at iteration {begun}, and those before are of run {parent}, which "
            "is not there."
        )
    return find_routes(home.path, first, last)


class _Way:
    """Puts the stretches together, line by line.

    Args:
        saved: The checkpoint with which it begins.
        last: The iteration with which it ends.
    """

    def __init__(self, saved: Saved | None, last: int) -> None:
        self._saved = saved
        self._begun = _begun(saved)
        self._last = last
        self._limits: dict[str, int | None] = {}
        self._waiting: dict[str, float] = {}
        self._start: Line = {}
        self.stretches: list[Stretch] = []

    def take(self, lines: Iterable[Line]) -> list[Stretch]:
        """Read the lines up to the last iteration; return the stretches."""
        for line in lines:
            now, is_bound = _iter(line), line["what"] in ("start", "rewind")
            if now > self._last or (is_bound and now == self._last > self._begun):
                break
            if is_bound:
                self._begin(line, now)
            elif line["what"] == "change":
                self._note_change(line, now)
            elif line["what"] == "asked" and line.get("do") == "set":
                self._set(now)
            elif line["what"] == "validation" and now >= self._begun:
                streams = tuple(map(str, cast("list[object]", line.get("streams") or ())))
                cast("dict[int, tuple[str, ...]]", self.stretches[-1].validated)[now] = streams
        return self.stretches

    def _begin(self, line: Line, now: int) -> None:
        if line["what"] == "start":
            self._start = line
            self._limits = dict(cast("Mapping[str, int | None]", line.get("limits") or {}))
        # A checkpoint that was saved after going back knows what is left out.
        is_known = self._saved is not None and _time(line) <= self._saved.time
        rewind = None if line["what"] == "start" or is_known else line
        first = max(now, self._begun)
        one = Stretch(self._start, first, self._last, (), dict(self._limits), rewind, {}, {})
        if now > self._begun and self.stretches:
            self.stretches[-1] = replace(self.stretches[-1], last=now)
            self.stretches.append(one)
        else:
            self.stretches = [one]

    def _note_change(self, line: Line, now: int) -> None:
        present = self.stretches[-1]
        if line.get("how") == "asked":
            self._waiting[str(line["key"])] = float(cast("float", line["new"]))
        elif line.get("how") == "resumed" and present.first == now:
            change = (*present.change, str(line["key"]))
            self.stretches[-1] = replace(present, change=change)

    def _set(self, now: int) -> None:
        """Take over the settings that were changed by one request."""
        settings, self._waiting = self._waiting, {}
        present = self.stretches[-1]
        if now > self._begun:
            changed = cast("dict[int, list[Mapping[str, float]]]", present.changed)
            changed.setdefault(now, []).append(settings)
            return
        # The checkpoint has the settings, but not the limits.
        for key in settings.keys() & {"max_iters", "max_epochs"}:
            self._limits[key] = int(settings[key])
        self.stretches[-1] = replace(present, limits=dict(self._limits))


def _listed(run: RunDir, stores: Iterable[str]) -> list[Saved]:
    found = []
    for place in dict.fromkeys([str(run.path), *stores]):
        store = CheckpointStore(place)
        entries = store.index.entries.values()
        found += [replace(one, location=store.location) for one in entries if one.is_resumable]
    return found + _shared(run)


def _shared(run: RunDir) -> list[Saved]:
    """Return the checkpoint of its parent that a run began with, where it is there."""
    parent = read_identity(run).parent
    if parent is None or parent.iter is None or not parent.crc32 or "://" in parent.path:
        return []
    noted = run.path / parent.path
    for path in (run.parent_folder / noted.name, Path(os.path.normpath(noted))):
        if path.is_file() or is_checkpoint_directory(path):
            place, size = str(path.parent), parent.size or 0
            return [
                Saved(path.name, place, parent.iter, 0, size, parent.crc32, time=parent.time or 0.0)
            ]
    return []


def completed(run: RunDir, lines: Sequence[Line]) -> int:
    """Return how many iterations are known to be done."""
    try:
        written = run.read_summary().get("iter")
    except (OSError, ValueError):
        written = 0
    recorded = [one.get("iter") for one in records(run.metrics_file, is_lenient=True)]
    known = [one for one in (written, *recorded) if isinstance(one, int)]
    return max([*known, *(_iter(line) for line in lines)], default=0)


def _has_seed(start: Line) -> bool:
    config, arguments = start.get("config"), start.get("arguments")
    trees = [one for one in (config, arguments) if isinstance(one, Mapping)]
    return _iter(start) == 0 and any(one.get("seed") is not None for one in trees)


def _known(saved: Sequence[Saved]) -> str:
    if not saved:
        return "there is none"
    return f"the first one is {min(saved, key=lambda one: one.iter).name}"


def _begun(saved: Saved | None) -> int:
    return 0 if saved is None else saved.iter


def _iter(line: Line) -> int:
    return cast("int", line["iter"])


def _time(line: Line) -> float:
    try:
        return datetime.fromisoformat(str(line.get("time"))).timestamp()
    except ValueError:
        return -math.inf
