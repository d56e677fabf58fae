"""Delete run directories, and nothing else."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hookloop.errors import HookloopError
from hookloop.runs.checkpoint_names import INDEX
from hookloop.runs.config_values import read_config
from hookloop.runs.identity import read_identity
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import detach, find_children
from hookloop.runs.lock import LOCK, RunLock
from hookloop.runs.reader import list_runs

TRACES = ("summary.json", "metrics.jsonl", INDEX, LOCK)
"""Files that only a run writes; a project may have a config.yaml, too."""


@dataclass(frozen=True)
class Removal:
    """A run that can be deleted.

    Attributes:
        path: Its directory.
        status: How it ended.
        size: The bytes that this frees.
        elsewhere: Stores outside of its directory, which are not touched.
    """

    path: Path
    status: str
    size: int
    elsewhere: tuple[str, ...] = ()


def plan_removal(path: Path) -> Removal:
    """Return what deleting a run would do.

    Raises:
        HookloopError: If it is not a run, is reached through a link, or may be alive.
    """
    home = Path(os.path.abspath(path))  # Not resolved: a link must be seen.
    if home.is_symlink():
        raise HookloopError(f"'{path}' is a symbolic link: name the directory that it leads to.")
    if not _holds_run(home):
        raise HookloopError(f"'{path}' is not the directory of a run, so it is not deleted.")
    if (home / ".git").exists() or Path.cwd().is_relative_to(home.resolve()):
        raise HookloopError(
            f"'{path}' is a repository, or the working directory is in it: it is not deleted."
        )
    if any(_holds_run(child) for child in home.iterdir()):
        raise HookloopError(f"'{path}' has other runs in it: name each run that is to be deleted.")
    run = list_runs(home)[0]
    if run.status == "running" or (run.status == "unknown" and (home / LOCK).exists()):
        reason = f" ({run.reason})" if run.reason else ""
        raise HookloopError(f"'{path}' may be alive: {run.status}{reason}. It is not deleted.")
    return Removal(path, run.status, _size(home), _elsewhere(RunDir(home)))


def check_children(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the runs that read their past in runs that are to be deleted, and are not themselves.

    Args:
        paths: The runs that are to be deleted.
    """
    going = {Path(os.path.abspath(path)) for path in paths}
    found = {path: [child.path for child in find_children(RunDir(path))] for path in paths}
    left = {path: [one for one in of if one not in going] for path, of in found.items()}
    return {path: children for path, children in left.items() if children}


def with_children(paths: Sequence[Path]) -> list[Path]:
    """Return runs, and all that come from them: children first, so that none is left without."""
    found: list[Path] = []
    for path in paths:
        for child in find_children(RunDir(path)):
            found += [one for one in with_children([child.path]) if one not in found]
        found += [path] if path not in found else []
    return found


def keep_past(path: Path) -> None:
    """Copy into a run what it reads in its parent: the lines of its past, and the checkpoint.

    Raises:
        HookloopError: If a part of that is not there.
    """
    run = RunDir(path)
    parent = read_identity(run).parent
    noted = None if parent is None or "://" in parent.path else path / parent.path
    kept = None if noted is None else run.parent_folder / noted.name
    if noted is not None and kept is not None and not kept.exists() and noted.exists():
        run.parent_folder.mkdir(exist_ok=True)
        (shutil.copytree if noted.is_dir() else shutil.copyfile)(noted, kept)
    detach(run)


def remove_run(path: Path) -> None:
    """Delete a run that `plan_removal` has accepted; links in it are deleted, never followed.

    Raises:
        HookloopError: If a process has begun to train there.
        OSError: If something of it cannot be deleted.
    """
    home = Path(os.path.abspath(path))
    lock = RunLock(home)
    lock.take()  # From here on no process can begin to train there.
    try:
        # Renamed first: a run is there with all of its files, or not at all.
        trash = home.with_name(f".{home.name}.{uuid.uuid4().hex[:8]}.deleted")
        os.rename(home, trash)
        shutil.rmtree(trash)
    finally:
        lock.give_back()


def _holds_run(path: Path) -> bool:
    return path.is_dir() and any(os.path.lexists(path / name) for name in TRACES)


def _size(directory: Path) -> int:
    """Return how many bytes deleting a directory frees; a file with a second name frees none."""
    total = 0
    for here, _, names in os.walk(directory):
        for name in names:
            found = os.lstat(Path(here) / name)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                total += found.st_size
    return total


def _elsewhere(run: RunDir) -> tuple[str, ...]:
    pointer = run.last_pointer
    found = [pointer.location] if pointer is not None and pointer.location else []
    try:
        config = read_config(run)
    except (OSError, ValueError):
        config = {}
    found += [
        value
        for key, value in config.items()
        if key.endswith(".directory") and isinstance(value, str)
    ]
    return tuple(dict.fromkeys(found))
