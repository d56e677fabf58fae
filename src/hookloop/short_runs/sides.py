"""The two sides of a bisect: what is repeated on each, and the blocks of lines that it writes.

A side is a run or a config, with what differs on purpose: a commit, an interpreter, settings,
variables. It is repeated in a process of its own, because libraries and user code cannot be
exchanged within one, and writes a block for each iteration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from hookloop.errors import HookloopError
from hookloop.runs import environment
from hookloop.runs.git import git
from hookloop.runs.layout import RunDir

Block = Mapping[str, object]
"""What a side writes: a header, then one for each iteration, then how it ended."""

FIXED = "PYTHONHASHSEED"
"""A variable that only has an effect if it is set before Python begins."""


class SideError(HookloopError):
    """A side that cannot be repeated, with the reason."""


@dataclass(frozen=True)
class Side:
    """What is repeated on one side.

    Attributes:
        label: What the user has written.
        run: The run that is repeated; None for a config.
        config: The config that is trained; None for a run.
        make: ``file.py:function``, which returns the arguments of the Trainer of a script.
        settings: Overrides of the config, each ``key=value``.
        commit: The commit whose code and config are used; None for the files as they are.
        tree: Where the files of the commit are.
        root: The working tree that the commit stands for.
        python: The interpreter; None for this one.
        variables: Variables of the process: those of the run, and what the user sets.
        threads: How many threads torch computes with; None for its default.
        is_changed: Whether it differs from the run as it was on purpose.
    """

    label: str
    run: str | None = None
    config: str | None = None
    make: str | None = None
    settings: tuple[str, ...] = ()
    commit: str | None = None
    tree: str | None = None
    root: str | None = None
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    is_changed: bool = False

    def to_spec(self, **more: object) -> dict[str, object]:
        """Return what a process of the side is told, as plain values."""
        return {**asdict(self), **more}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Side:
        """Read what `to_spec` returned, without what was added."""
        given = {name: spec[name] for name in cls.__dataclass_fields__ if name in spec}
        given["settings"] = tuple(cast("Sequence[str]", given.get("settings") or ()))
        return cls(**given)  # type: ignore[arg-type]

    def place(self, path: str) -> str:
        """Return where a file of the working tree is on this side."""
        if self.tree is None or self.root is None:
            return path
        whole = os.path.abspath(path)
        if whole == self.root or whole.startswith(self.root + os.sep):
            return os.path.join(self.tree, os.path.relpath(whole, self.root))
        return path


Open = Callable[..., Iterator[Block]]
"""Repeats a side and yields its blocks: ``open(side, first, last, mode="lines", ...)``."""


def parse_side(text: str) -> Side:
    """Read ``RUN``, ``RUN@COMMIT``, ``CONFIG`` or ``CONFIG@COMMIT``.

    Raises:
        SideError: If it is none of them.
    """
    path, commit = text, None
    if not os.path.exists(path) and "@" in text:
        path, _, commit = text.rpartition("@")
    if os.path.isdir(path) and (RunDir(Path(path)).interventions_file.is_file()):
        side = Side(text, run=path, commit=commit)
        return _as_recorded(side)
    if commit is not None or os.path.isfile(path):
        if os.path.isdir(path):
            raise SideError(f"'{path}' is not a run: it has no interventions.jsonl.")
        return Side(text, config=path, commit=commit)
    if os.path.isdir(path):
        raise SideError(
            f"'{path}' cannot be repeated: it has no interventions.jsonl, which says how it was "
            "trained. Runs of an older version have none."
        )
    raise SideError(f"There is no run and no config '{path}'.")


def _as_recorded(side: Side) -> Side:
    """Return a run with the variables, threads and commit of its start."""
    from hookloop.runs.interventions import read_interventions

    run = RunDir(Path(cast("str", side.run)))
    starts = [one for one in read_interventions(run) if one["what"] == "start"]
    if not starts:
        raise SideError(f"'{side.run}' cannot be repeated: its record has no start.")
    first = starts[0]
    known = cast("Mapping[str, str]", first.get("variables") or {})
    kept = {n: v for n, v in known.items() if not environment.OF_PLACE.fullmatch(n)}
    threads = first.get("threads")
    count = threads.get("torch") if isinstance(threads, Mapping) else None
    commit = side.commit or _commit_of(run, cast("int", first["iter"]))
    return Side(
        side.label, run=side.run, commit=commit, variables=_without_ranks(kept),
        threads=count if isinstance(count, int) else None,
    )  # fmt: skip


def _without_ranks(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out how many processes there were: a replay is one."""
    return {n: v for n, v in variables.items() if n not in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")}


def _commit_of(run: RunDir, iteration: int) -> str | None:
    """Return the commit of a run's code, if that is not what the working tree has."""
    written = environment.read_starts(run.path)
    found = next((one.get("git") for one in written if one.get("iter") == iteration), None)
    if not isinstance(found, Mapping) or not found.get("commit") or found.get("dirty"):
        return None  # Unknown, or never committed as it was.
    commit = str(found["commit"])
    here = git(Path.cwd(), "rev-parse", "HEAD").strip()
    is_changed = bool(git(Path.cwd(), "status", "--porcelain", "--untracked-files=no").strip())
    if not here or (here == commit and not is_changed):
        return None
    known = git(Path.cwd(), "cat-file", "-t", commit).strip() == "commit"
    return commit if known else None


def process_variables(side: Side) -> dict[str, str]:
    """Return all variables of the process of a side."""
    if side.run is None and not side.variables:
        return dict(os.environ)
    kept = dict(os.environ)
    if side.run is not None:  # What was not set then must not be set now.
        now = environment.variables(os.environ)
        for name in now:
            if not environment.OF_PLACE.fullmatch(name) and name not in side.variables:
                del kept[name]
    return {**kept, **side.variables}
