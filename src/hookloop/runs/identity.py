"""Which run a directory holds: an id that outlives moving and copying, and the run it continues.

Both are in ``summary.json``. The id is made when the training first begins. A copy of a directory
keeps the id of its origin, whose past it has.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from hookloop.runs.layout import RunDir

RUN_ID = "run_id"
PARENT = "parent"

LATEST = 1e11
"""A later time, in seconds since 1970, is damage."""

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass(frozen=True)
class Parent:
    """The checkpoint of another run that a run began with.

    Attributes:
        path: The checkpoint, as seen from the run's directory, or a URL.
        run_id: The run that saved it, if that is known.
        iter: Iterations completed in it; None until it was loaded.
        size: Its bytes.
        crc32: Its checksum.
        run: The directory of that run, as seen from this one; None if it is beside the checkpoint.
        time: When the checkpoint was saved, in seconds since 1970.
        changed: What was changed on purpose, under the names that a resume takes.
    """

    path: str
    run_id: str | None = None
    iter: int | None = None
    size: int | None = None
    crc32: int | None = None
    run: str | None = None
    time: float | None = None
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        of = f" of run {self.run_id}" if self.run_id else ""
        at = f", iteration {self.iter}" if self.iter is not None else ""
        return f"'{self.path}'{of}{at}"


@dataclass(frozen=True)
class Identity:
    """Who a run is.

    Attributes:
        run_id: Its id; None before its training began, and for runs of earlier versions.
        parent: The checkpoint of another run that it began with.
    """

    run_id: str | None = None
    parent: Parent | None = None

    def as_summary(self) -> dict[str, object]:
        """Return the entries of ``summary.json``."""
        return {RUN_ID: self.run_id, PARENT: asdict(self.parent) if self.parent else None}


@dataclass(frozen=True)
class Owner:
    """The run that a store belongs to, as its index notes it.

    Attributes:
        run_id: Its id.
        run_dir: Its directory; None if that is the store itself.
        place: Where the store is, unless it is a URL: a copy of it is another store.
    """

    run_id: str
    run_dir: str | None = None
    place: str | None = None

    def __str__(self) -> str:
        return f"run {self.run_id}" + (f" ('{self.run_dir}')" if self.run_dir else "")


def new_id() -> str:
    """Make an id; no seed changes it."""
    return uuid.uuid4().hex[:16]


def read_identity(run: RunDir) -> Identity:
    """Return who the run in a directory is; empty if nothing says so, or it cannot be read."""
    try:
        summary = run.read_summary()
    except (OSError, ValueError):
        return Identity()
    return Identity(as_id(summary.get(RUN_ID)), parent_in(summary))


def write_identity(run: RunDir, identity: Identity) -> None:
    """Note who a run is, in the summary that is there."""
    try:
        old = run.read_summary()
    except (OSError, ValueError):  # A damaged file is replaced.
        old = {}
    new = {**old, **identity.as_summary()}
    if new != old:
        run.write_summary(new)


def as_id(value: object) -> str | None:
    """Return an id that a file holds; None for what cannot be one."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def is_foreign(owner: Owner, run_dir: str | Path, run_id: str | None) -> bool:
    """Return whether a store belongs to another run than the one in a directory.

    Args:
        owner: Whose it is.
        run_dir: The directory.
        run_id: The id of the run there; None if it has none yet.
    """
    if run_id is not None:
        return owner.run_id != run_id
    # An older run, or one whose directory was lost: the store is its own unless somebody else's
    # directory shows that it is not.
    return not _is_there(owner, run_dir) and is_alive(owner)


def is_copied(owner: Owner, run_dir: str | Path) -> bool:
    """Return whether a store belongs to the directory that this one is a copy of."""
    return not _is_there(owner, run_dir) and is_alive(owner)


def is_same_place(noted: str, own: str | Path) -> bool:
    """Return whether a directory that a file names is one that the user named."""
    # realpath asks the disk about every part of a path, so only the user's own path gets it.
    return os.path.abspath(noted) in (os.path.abspath(own), os.path.realpath(own))


def _is_there(owner: Owner, run_dir: str | Path) -> bool:
    return owner.run_dir is None or is_same_place(owner.run_dir, run_dir)


def is_alive(owner: Owner) -> bool:
    """Return whether the directory that a store names still holds its run."""
    if owner.run_dir is None:
        return False
    return read_identity(RunDir(Path(owner.run_dir))).run_id == owner.run_id


def parent_in(summary: Mapping[str, object]) -> Parent | None:
    """Return the parent that a summary names; None for what is damaged."""
    value = summary.get(PARENT)
    if not isinstance(value, Mapping) or not isinstance(value.get("path"), str):
        return None
    numbers = {name: value.get(name) for name in ("iter", "size", "crc32")}
    if any(n is not None and (type(n) is not int or n < 0) for n in numbers.values()):
        return None
    counts = cast("dict[str, int | None]", numbers)
    run, time, changed = (value.get(name) for name in ("run", "time", "changed"))
    return Parent(
        cast("str", value["path"]),
        as_id(value.get(RUN_ID)),
        **counts,
        run=run if isinstance(run, str) else None,
        time=float(time) if isinstance(time, int | float) and 0 <= time < LATEST else None,
        changed=tuple(map(str, changed)) if isinstance(changed, list) else (),
    )
