"""Where runs come from: the past that a fork shares with its parent, and which runs are related.

A fork has the lines of its own iterations. Those before are its parent's, and are read there. What
has to outlive the parent is in the folder ``parent`` of the fork: a link to the checkpoint, and the
lines of the past once the fork is detached.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hookloop.errors import HookloopError
from hookloop.runs.files import write_text
from hookloop.runs.identity import Identity, Parent, read_identity
from hookloop.runs.interventions import other_ways
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import records
from hookloop.runs.reader import find_runs
from hookloop.runs.records import to_json

DEEPEST = 32
"""How many parents are followed: a longer chain is damage, or a circle."""

KEPT = "past.jsonl"
"""The lines of its past that a detached run has in its folder ``parent``."""

ENDLESS = 1 << 60
MOST_BESIDE = 10_000
"""How many directories are searched for a parent that was moved."""


@dataclass(frozen=True)
class Inherited:
    """Lines of another run that are the past of a run.

    Attributes:
        run: The directory that has them.
        run_id: The id of the run that wrote them.
        file: The lines, as ``metrics.jsonl`` has them.
        after: The last iteration that is not among them.
        until: The last one that is.
        wanted: The last one that should be; the run has gone another way since if it is later.
    """

    run: RunDir
    run_id: str | None
    file: Path
    after: int
    until: int
    wanted: int


@dataclass(frozen=True)
class Past:
    """What a run shares with those that it comes from.

    Attributes:
        lines: The lines of each of them, the oldest first.
        missing: Which part of it is not there, for people; empty if all of it is.
    """

    lines: tuple[Inherited, ...] = ()
    missing: str = ""


def past_of(run: RunDir) -> Past:
    """Return what a run shares with those that it comes from; empty for one without a parent."""
    found: list[Inherited] = []
    missing = ""
    identity, limit = read_identity(run), None
    for _ in range(DEEPEST):
        parent = identity.parent
        if parent is None or parent.iter is None:
            break
        limit = parent.iter if limit is None else min(limit, parent.iter)
        kept = run.parent_folder / KEPT
        if kept.is_file():  # It was detached: all of its past is here.
            found.append(Inherited(run, parent.run_id, kept, -1, limit, limit))
            break
        home = find_parent(run, parent)
        if home is None:
            missing = f"the iterations until {limit} are missing: run {parent} is not there"
            break
        identity = read_identity(home)
        begun = identity.parent.iter if identity.parent is not None else None
        after = -1 if begun is None else begun
        until = min([limit, *_left_before(home, parent)])
        if until < limit and limit > after:
            missing = (
                f"the iterations {max(until, after) + 1} to {limit} are missing: '{home.path}' has "
                "gone another way since"
            )
        if limit > after:
            found.append(Inherited(home, identity.run_id, home.metrics_file, after, until, limit))
        run = home
    else:
        missing = f"it has more than {DEEPEST} parents: those before are not read"
    return Past(tuple(reversed(found)), missing)


def inherited_records(run: RunDir) -> Iterator[dict[str, object]]:
    """Yield the lines that a run shares with those that it comes from, the oldest first."""
    for one in past_of(run).lines:
        for line in records(one.file, is_lenient=True):
            iteration = line.get("iter")
            if isinstance(iteration, int) and one.after < iteration <= one.until:
                yield line


def common_past(one: RunDir, other: RunDir) -> int | None:
    """Return the last iteration that two runs have in common; None if they are not related."""
    lines = [_line_of(run) for run in (one, other)]
    names = lines[0].keys() & lines[1].keys()
    shared = [min(lines[0][name], lines[1][name]) for name in names]
    # A copy of a run has its id: nothing says until where they are the same.
    return max((one for one in shared if one < ENDLESS), default=None)


def find_parent(run: RunDir, parent: Parent | None = None) -> RunDir | None:
    """Return the directory of the run that a run comes from; None if it is not there.

    It may have been moved within the directories around. Anybody may have written the path, so that
    it is only followed to where the user's own runs are.
    """
    parent = parent if parent is not None else read_identity(run).parent
    if parent is None:
        return None
    home = Path(os.path.abspath(run.path))
    named = [path for path in (parent.run, os.path.dirname(parent.path)) if path is not None]
    noted = [Path(os.path.normpath(home / one)) for one in named if "://" not in one]
    near = [one for one in noted if is_near(one, home) and one != home]
    for path in near:
        found = read_identity(RunDir(path)).run_id
        if found == parent.run_id and (found is not None or RunDir(path).holds_run()):
            return RunDir(path)
    if parent.run_id is None:
        return None
    places = {home.parent, *(one.parent for one in near)}
    moved = (one for one in directories_in(places) if one != home)
    return next(
        (RunDir(one) for one in moved if read_identity(RunDir(one)).run_id == parent.run_id), None
    )


def find_children(run: RunDir, places: Iterable[Path] = ()) -> list[RunDir]:
    """Return the runs that come from a run and read their past there.

    Args:
        run: The run.
        places: Where they are searched, besides the directory that the run is in.
    """
    run_id = read_identity(run).run_id
    home = Path(os.path.abspath(run.path))
    if run_id is None:
        return []
    seen: dict[Path, RunDir] = {}
    for place in (home.parent, *places):
        for path, problem in find_runs(Path(os.path.abspath(place))):
            if problem is None and path not in seen and path != home:
                seen[path] = RunDir(path)
    return [one for one in seen.values() if _is_child(one, run_id, home)]


def detach(run: RunDir) -> None:
    """Copy the lines of a run's past into its own directory, so that it needs no parent.

    Raises:
        HookloopError: If a part of them is not there.
    """
    if is_detached(run):
        return
    past = past_of(run)
    if past.missing:
        raise HookloopError(f"'{run.path}' cannot be detached: {past.missing}.")
    text = "".join(f"{to_json(line)}\n" for line in inherited_records(run))
    run.parent_folder.mkdir(exist_ok=True)
    write_text(run.parent_folder / KEPT, text)


def is_detached(run: RunDir) -> bool:
    """Return whether a fork has the lines of its past itself."""
    return (run.parent_folder / KEPT).is_file()


def is_near(path: Path, home: Path) -> bool:
    """Return whether a path that a run's file names is where the user's own runs are."""
    around = (home.parent.parent, home.parent, Path.cwd())
    # Not the root: everything is below it.
    return any(path.is_relative_to(one) for one in around if one != Path(one.anchor))


def directories_in(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the directories in some places, without links."""
    for place in sorted(set(places)):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            beside = [e.path for _, e in zip(range(MOST_BESIDE), entries, strict=False)]
        yield from (
            path for path in map(Path, sorted(beside)) if not path.is_symlink() and path.is_dir()
        )


def _is_child(run: RunDir, run_id: str, home: Path) -> bool:
    identity: Identity = read_identity(run)
    if identity.parent is None or identity.parent.run_id != run_id or identity.run_id == run_id:
        return False
    found = find_parent(run, identity.parent)
    # A copy of the parent has its id, too: the child reads one of them.
    return not is_detached(run) and found is not None and found.path == home


def _line_of(run: RunDir) -> dict[str, int]:
    """Return the ids of a run and of those it comes from, each with its last iteration in it."""
    line: dict[str, int] = {}
    identity, limit = read_identity(run), ENDLESS
    for _ in range(DEEPEST):
        if identity.run_id is not None:
            line.setdefault(identity.run_id, limit)
        parent = identity.parent
        if parent is None or parent.iter is None:
            break
        limit = min(limit, parent.iter)
        home = find_parent(run, parent)
        if home is None:
            if parent.run_id is not None:
                line.setdefault(parent.run_id, limit)
            break
        run, identity = home, read_identity(home)
    return line


def _left_before(home: RunDir, parent: Parent) -> list[int]:
    """Return from where a parent has made other iterations since the checkpoint was saved."""
    saved = parent.time
    if saved is None:
        return []
    when = datetime.fromtimestamp(saved, UTC)
    return [begun for begun, time in other_ways(home) if time > when]
