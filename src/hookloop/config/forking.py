"""`fork`: begin a new run at an iteration of another one, whose past it shares."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from pathlib import Path
from time import time
from typing import cast

from hookloop.checkpoint.choose import load_newest
from hookloop.checkpoint.store.ancestry import note_parent, path_from
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import LocalStorage, is_checkpoint_directory, is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.checkpoint.store.writing import write_checkpoint
from hookloop.config.blueprint import draw
from hookloop.config.dump import effective
from hookloop.config.load import load
from hookloop.config.replaying import config_of, replay
from hookloop.config.tree import Config
from hookloop.errors import CheckpointError, HookloopError, nearest
from hookloop.runs.checkpoint_names import checkpoint_name
from hookloop.runs.config_values import is_whole
from hookloop.runs.family import END_OF_FORK, is_end_of_fork
from hookloop.runs.identity import Identity, Parent, read_identity, write_identity
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import find_parent
from hookloop.short_runs.route import find_saved, start_at

WITHIN = "fork_"
"""Before the name of a checkpoint that no run has saved: it was made by a replay."""


@dataclass(frozen=True)
class Fork:
    """A run that begins at an iteration of another one, and is not trained yet.

    Attributes:
        run_dir: Its directory; ``resume=True`` begins the training, ``hookloop resume`` too.
        parent: The run that it comes from.
        iter: The iteration with which it begins.
        checkpoint: The checkpoint, in its own directory.
        is_linked: Whether that is a second name of the parent's file, which takes no space.
        replayed: How many iterations were repeated to get there; 0 from a checkpoint.
        changed: What was changed on purpose.
    """

    run_dir: Path
    parent: Path
    iter: int
    checkpoint: Path
    is_linked: bool
    replayed: int = 0
    changed: tuple[str, ...] = ()


def fork(
    run_dir: str | Path,
    *,
    at: int | None = None,
    change: Sequence[str] = (),
    iters: int | None = None,
    into: str | Path | None = None,
    make: Callable[[Path], Mapping[str, object]] | None = None,
    tell: Callable[[str], object] = str,
) -> Fork:
    """Make a new run that begins at an iteration of another one.

    Nothing is trained yet, and nothing of the parent is written. Its checkpoint gets a second name
    in the new directory; between two checkpoints, the way to the iteration is repeated bit for bit.

    Args:
        run_dir: The run.
        at: The iterations that are done when it begins; None for the newest checkpoint.
        change: What differs, as on the command line: ``"optimizer.lr=3e-4"``. For a run that a
            script made, the names of what differs: ``"optimizer.lr"``.
        iters: After how many iterations it stops. Schedules are those of the whole training.
        into: The directory of the new run; by default beside the parent: ``runs/one@1200``.
        make: Returns the arguments of the Trainer of a script, given a directory; needed between
            two checkpoints of a run without a config.
        tell: Is told what is repeated, before the first iteration.

    Raises:
        HookloopError: If there is no way to the iteration, or a change is not possible.
    """
    run = RunDir(Path(run_dir))
    if not run.holds_run():
        beside = run.path.parent.iterdir() if run.path.parent.is_dir() else ()
        hint = nearest(run.path.name, [one.name for one in beside if RunDir(one).holds_run()])
        raise HookloopError(f"There is no run in '{run.path}'.{hint}")
    at = _newest(run) if at is None else at
    if at < 1:
        raise HookloopError(f"fork: at={at} must be 1 or more: 0 is a new run of the same config.")
    run = _run_of(run, at)
    config, has_other_hooks = _config_at(run, at, change, iters)
    if config is not None:
        draw(config)  # Problems are reported before anything is made.
    elif iters is not None or any("=" in one for one in change):
        raise HookloopError(
            f"'{run.path}' was made by a script, so its config is not known: fork() without values,"
            " and let the script train with run_dir=, resume=True and what differs."
        )
    home = RunDir(_claim(run, at, into))
    try:
        names = tuple(dict.fromkeys(one.partition("=")[0].strip() for one in change))
        made = _Made(run, home, at, make, tell)
        parent = replace(made.parent, changed=(*names, *(["hooks"] if has_other_hooks else [])))
        if config is not None:
            home.write_config(effective(config, home.path))
        write_identity(home, Identity(None, parent))  # Last: with it, the directory is a fork.
    except BaseException:
        shutil.rmtree(home.path)
        raise
    return Fork(home.path, run.path, at, made.path, made.is_linked, made.replayed, names)


class _Made:
    """The checkpoint of a fork, in its own directory."""

    def __init__(
        self,
        run: RunDir,
        home: RunDir,
        at: int,
        make: Callable[[Path], Mapping[str, object]] | None,
        tell: Callable[[str], object],
    ) -> None:
        self.is_linked = False
        self.replayed = 0
        home.parent_folder.mkdir()
        saved = find_saved(run.path, at)
        if saved is not None:
            self.path = home.parent_folder / saved.name
            self.is_linked = _link(saved, self.path)
            loaded = CheckpointStore(saved.location).load(saved.name, whole=False)
            self.parent = note_parent(home.path, saved.url, loaded)
        else:
            self.path = home.parent_folder / checkpoint_name(f"{WITHIN}iter", at)
            found = replay(run.path, at=at, make=make, tell=tell)
            self.replayed = at - found.begun
            state = dict(found.state) | {"run_id": read_identity(run).run_id}
            storage = LocalStorage(home.parent_folder)
            written = write_checkpoint(storage, self.path.name, state)
            place = path_from(home.path, str(self.path))
            self.parent = Parent(place, None, at, written.size, written.crc32, time=time())
        self.parent = replace(
            self.parent,
            run_id=read_identity(run).run_id,
            run=path_from(home.path, str(run.path)),
        )


def _link(saved: Saved, path: Path) -> bool:
    """Give a checkpoint a second name; return False if it had to be copied."""
    if is_url(saved.location):
        with CheckpointStore(saved.location).storage.open(saved.name) as source:
            LocalStorage(path.parent).write(
                path.name, lambda target: shutil.copyfileobj(source, target, 1 << 22)
            )
        return False
    linked = True

    def link(source: str, target: str) -> None:
        nonlocal linked
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:  # Another file system, or one without links.
            linked = False
            shutil.copyfile(source, target)

    try:
        if is_checkpoint_directory(saved.path):
            shutil.copytree(saved.path, path, copy_function=link)
        else:
            link(str(saved.path), str(path))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"'{saved.path}' was deleted meanwhile: the run keeps no checkpoint of this iteration. "
            "Fork it again, and the way there is repeated."
        ) from error
    return linked


def _newest(run: RunDir) -> int:
    found = load_newest(str(run.path), whole=False)
    if found is None:
        raise CheckpointError(f"'{run.path}' has no checkpoint: say where to begin, as in RUN@100.")
    progress = cast("Mapping[str, int]", found[1]["progress"])
    return progress["iter"]


def _run_of(run: RunDir, at: int) -> RunDir:
    """Return the run that made an iteration: of a fork, that may be its parent."""
    parent = read_identity(run).parent
    while parent is not None and parent.iter is not None and at <= parent.iter:
        home = find_parent(run, parent)
        if home is None:
            raise HookloopError(
                f"'{run.path}' began at iteration {parent.iter}, and those before are of run "
                f"{parent}, which is not there."
            )
        run, parent = home, read_identity(home).parent
    return run


def _config_at(
    run: RunDir, at: int, change: Sequence[str], iters: int | None
) -> tuple[Config | None, bool]:
    """Return the config with which an iteration was made, with what differs; None of a script.

    And whether it has other hooks, which nobody but the fork has changed.
    """
    stretch = start_at(run.path, at)
    start = stretch.start if stretch is not None else {}
    tree = start.get("config")
    is_known = isinstance(tree, Mapping) and is_whole(cast("dict[str, object]", tree))
    if not (is_known or run.config_file.is_file()):
        return None, False

    def read(limits: Mapping[str, int | None]) -> Config:
        given = [f"{name}={value}" for name, value in limits.items() if value is not None]
        given += change
        return config_of(run, start, given) if is_known else load(run.path, given)

    # The limits may have been changed while it was trained.
    limits = dict(stretch.limits) if stretch is not None else {}
    config = read(limits)
    if iters is None:
        return config, _without_end(config)
    if longer := _longer(run, config, at + iters):
        config = read({**limits, **longer})
    _without_end(config)
    _stop_after(config, at + iters)
    return config, True


def _longer(run: RunDir, config: Config, iterations: int) -> dict[str, int | None]:
    """Return the limits that a training of so many iterations needs, where its own are smaller."""
    found: dict[str, int | None] = {}
    longest, epochs = config.tree.get("max_iters"), config.tree.get("max_epochs")
    if isinstance(longest, int) and longest < iterations:
        found["max_iters"] = iterations
    try:
        total = run.read_summary().get("total_iters")
    except (OSError, ValueError):
        total = None
    if isinstance(epochs, int) and isinstance(total, int) and 0 < total < iterations:
        found["max_epochs"] = ceil(epochs * iterations / total)
    return found


def _stop_after(config: Config, iterations: int) -> None:
    """Add the hook that ends the training: a smaller limit would change the schedules."""
    entry: dict[str, object] = {"type": "StopAfter", "iterations": iterations}
    hooks = config.tree.get("hooks")
    if isinstance(hooks, dict):
        hooks[END_OF_FORK] = entry
    else:
        others = hooks if isinstance(hooks, list) else []
        config.tree["hooks"] = [*others, {**entry, "name": END_OF_FORK}]


def _without_end(config: Config) -> bool:
    """Remove the hook that ended the parent, which was a fork itself; return whether there is one.

    The new run is as long as the training of both.
    """
    hooks = config.tree.get("hooks")
    if isinstance(hooks, dict):
        return hooks.pop(END_OF_FORK, None) is not None
    listed = hooks if isinstance(hooks, list) else []
    kept = [one for one in listed if not is_end_of_fork(one)]
    if len(kept) < len(listed):
        config.tree["hooks"] = kept
    return len(kept) < len(listed)


def _claim(run: RunDir, at: int, into: str | Path | None) -> Path:
    """Make the directory of a fork."""
    if into is not None:
        return RunDir.create(into).path
    home = Path(os.path.abspath(run.path))
    for number in count(1):
        beside = run.path if run.path.name else home
        path = beside.with_name(f"{home.name}@{at}" + (f"-{number}" if number > 1 else ""))
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError
