"""Choose a checkpoint of a run: the best, the last, the newest that is whole, or one by its name.

Only locations that the user named are opened: the run's directory and the stores of its hooks. The
file ``last_checkpoint`` chooses among them and never adds one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import cast

from torch import Tensor

from hookloop.checkpoint.saving.retention import first_to_stay
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import is_checkpoint_directory, is_same_location, is_url
from hookloop.checkpoint.store.store import CheckpointStore, load
from hookloop.errors import CheckpointError, nearest
from hookloop.runs.checkpoint_names import LAST as POINTER
from hookloop.runs.checkpoint_names import is_checkpoint_name
from hookloop.runs.identity import as_id, read_identity
from hookloop.runs.layout import Pointer, RunDir
from hookloop.runs.policy import hash_of
from hookloop.version import VERSION

_log = logging.getLogger("hookloop")

BEST, LAST = "best", "last"

WEIGHTS = ("averaged", "model", "state_dict")
"""Where the weights are in a file: the averaged ones first, with which the run evaluated."""

Found = tuple[str, dict[str, object]]
"""Where a checkpoint is, and what it holds."""


@dataclass(frozen=True)
class Chosen:
    """A checkpoint that was chosen. It is read by then: a damaged last one leads to an older one.

    Attributes:
        path: Its path or URL.
        kind: ``best``, ``last`` or ``file``.
        content: What it holds.
        saved: What the index says about it, if it is listed.
        others: Other checkpoints that are the best by another metric.
    """

    path: str
    kind: str
    content: Mapping[str, object] = field(repr=False)
    saved: Saved | None = None
    others: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """Which weights it has, those to use first; ``file`` if it holds nothing else."""
        return next((p for p in WEIGHTS if isinstance(self.content.get(p), Mapping)), "file")

    @property
    def weights(self) -> Mapping[str, object]:
        """The tensors by name."""
        content = self.content
        if self.part in content:
            return cast("Mapping[str, object]", content[self.part])
        if content and all(isinstance(value, Tensor) for value in content.values()):
            return content
        raise CheckpointError(
            f"'{self.path}' has no weights under {' or '.join(WEIGHTS)}: it has "
            f"{', '.join(map(str, content)) or 'nothing'}."
        )

    @property
    def iteration(self) -> int:
        """Iterations completed in it."""
        progress = self.content.get("progress")
        return int(progress.get("iter", 0)) if isinstance(progress, Mapping) else 0

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of that iteration that are numbers, by their full names."""
        # The index has those of the validation too, which came after the save.
        known = self.saved.metrics if self.saved is not None else self.content.get("metrics")
        return {
            str(name): value
            for name, value in (known.items() if isinstance(known, Mapping) else ())
            if isinstance(value, int | float) and not isnan(value)
        }

    @property
    def run_id(self) -> str | None:
        """The run that saved it, if the file says so."""
        return as_id(self.content.get("run_id"))

    def without_tensors(self) -> Chosen:
        """Return what it says about itself; a model that was loaded does not keep the file."""
        facts = {name: self.content.get(name) for name in ("progress", "metrics", "run_id")}
        return replace(self, content={**facts, self.part: {}})

    def describe(self, config: Mapping[str, object]) -> dict[str, object]:
        """Return what a file made of these weights says about itself: plain values.

        Args:
            config: The effective config, with secrets as references.
        """
        about: dict[str, object] = {
            "hookloop": VERSION,
            "checkpoint": self.path.rpartition("/")[2],
            "weights": self.part,
            "config_sha256": hash_of(config),
        }
        if self.run_id is not None:
            about["run_id"] = self.run_id
        return about if self.saved is None else about | self.saved.describe()

    def __str__(self) -> str:
        words = "averaged weights" if self.part == "averaged" else "weights"
        where = f", iteration {self.saved.iter:,}" if self.saved is not None else ""
        kind = "" if self.kind == "file" else f" ({self.kind}{where})"
        run = f", of run {self.run_id}" if self.run_id is not None else ""
        return f"{words} of '{self.path}'{kind}{run}"


@dataclass(frozen=True)
class BestCheckpoint:
    """The checkpoint with the best value of a metric.

    Attributes:
        path: File or URL.
        metric: The full name of the metric: ``val/accuracy``.
        value: Its value.
        iteration: Iterations completed in it.
        epoch: Epochs completed in it.
    """

    path: str
    metric: str
    value: float
    iteration: int
    epoch: int

    @classmethod
    def of(cls, metric: str, saved: Saved) -> BestCheckpoint:
        """Describe an entry of an index."""
        full = f"val/{metric}"
        value = saved.metrics.get(full, float("nan"))
        return cls(saved.url, full, value, saved.iter, saved.epoch)

    def __str__(self) -> str:
        return f"{self.path} ({self.metric} {self.value:.4g}, iteration {self.iteration})"


def best_in(entries: Iterable[Saved], owner: str | None = None) -> dict[str, list[Saved]]:
    """Return the best checkpoints of each metric among the entries of an index, the best first.

    Args:
        entries: In the order of saving.
        owner: The hook that keeps them; any by default.
    """
    found: dict[str, list[Saved]] = {}
    for saved in entries:
        for name in saved.owners if saved.kind == "best" else ():
            hook, _, metric = name.partition("/")
            if metric and owner in (None, hook):
                found.setdefault(metric, []).append(saved)
    return {metric: first_to_stay(of, f"/{metric}") for metric, of in found.items()}


def choose(
    run_dir: str | Path,
    which: str | Path | None = None,
    stores: Sequence[str] = (),
    metric: str | None = None,
) -> Chosen:
    """Read a checkpoint of a run.

    Args:
        run_dir: The run's directory.
        which: ``"best"``, ``"last"``, the name of a checkpoint of the run, a path or a URL; by
            default the best where one is kept, else the last.
        stores: The other locations in which the run keeps checkpoints.
        metric: The one that decides where a best of several metrics is kept.

    Raises:
        CheckpointError: If there is no such checkpoint, or it is damaged; it lists those that there
            are.
    """
    if which in (None, BEST) and (best := find_best(run_dir, stores)):
        return _best_of(best, metric)
    if which in (None, LAST) and (newest := load_newest(str(run_dir), stores)) is not None:
        return _of_path(*newest, LAST)
    name = str(which or LAST)
    for location in own_locations(run_dir, stores) if "/" not in name else ():
        if name in CheckpointStore(location).storage.names():
            return _of_path(f"{location}/{name}", _read(f"{location}/{name}"))
    if is_url(name) or Path(name).is_file() or is_checkpoint_directory(Path(name)):
        return _of_path(name, _read(name))
    raise _nothing(name, run_dir, stores)


def find_best(run_dir: str | Path, stores: Sequence[str] = ()) -> dict[str, Saved]:
    """Return the best checkpoint of each metric of which a run keeps any."""
    found: dict[str, Saved] = {}
    for location in own_locations(run_dir, stores):
        store = CheckpointStore(location)
        existing = set(store.storage.names())
        for metric, ranked in best_in(store.index.entries.values()).items():
            if there := [one for one in ranked if one.name in existing]:
                found[metric] = there[0]
    return found


def _best_of(best: dict[str, Saved], first: str | None) -> Chosen:
    """Read the best by one metric: the given one, or the first that the run's own hook names."""
    metric = first if first in best else next(iter(best))
    content = _read(best[metric].url)
    if len(best) > 1 and first is None and (main := _main_metric(content, best)) != metric:
        metric, content = main, _read(best[main].url)
    saved = best.pop(metric)
    others = tuple(one.name for one in best.values() if one.iter != saved.iter)
    return Chosen(saved.url, BEST, content, saved, others)


def _of_path(path: str, content: Mapping[str, object], kind: str = "file") -> Chosen:
    location, _, name = path.rpartition("/")
    return Chosen(path, kind, content, CheckpointStore(location or ".").index.entries.get(name))


def _read(path: str) -> Mapping[str, object]:
    if not path.endswith(".safetensors"):
        return load(path)
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:
        raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error


def _main_metric(checkpoint: Mapping[str, object], best: Mapping[str, Saved]) -> str:
    """Return the metric that the run's own hook named first, as its state in a checkpoint says."""
    states = checkpoint.get("hooks")
    for state in states.values() if isinstance(states, Mapping) else ():
        named = state.get("auto") if isinstance(state, Mapping) else None
        for metric in named if isinstance(named, list) else ():
            if metric in best:
                return cast("str", metric)
    return next(iter(best))


def _nothing(which: str, run_dir: str | Path, stores: Sequence[str]) -> CheckpointError:
    names = [
        name
        for location in own_locations(run_dir, stores)
        for name in CheckpointStore(location).storage.names()
        if is_checkpoint_name(name) or is_checkpoint_directory(Path(location) / name)
    ]
    there = f"There are: {', '.join(sorted(names))}." if names else "It has no checkpoint at all."
    pointer = None if is_url(str(run_dir)) else RunDir(Path(run_dir)).last_pointer
    if not names and pointer is not None and pointer.location is not None:
        there = f"Its last one is '{pointer}': if you trust that, give this path."
    what = f"'{run_dir}' has no checkpoint '{which}'.{nearest(which, [BEST, LAST, *names])}"
    if which in (BEST, LAST):
        what = f"'{run_dir}' keeps no {which} checkpoint."
    advice = " SaveCheckpoint(best=...) keeps the best." if which == BEST else ""
    return CheckpointError(f"{what} {there}{advice}", argument="checkpoint")


def load_newest(
    run_dir: str, stores: Sequence[str] = (), *, whole: bool = True
) -> tuple[str, dict[str, object]] | None:
    """Load a run's newest checkpoint: from where it was last saved, or else from another store.

    Args:
        run_dir: The run's directory, or the URL of a store.
        stores: The other locations in which the run keeps checkpoints, as the user named them.
        whole: Whether to read the tensors of a directory; otherwise they are verified only.
    """
    problems: list[str] = []
    for location, last in search_locations(run_dir, stores):
        try:
            store = CheckpointStore(location)
            if location != run_dir:
                check_owner(store, run_dir)
            found = store.newest(last, whole=whole)
            if found is not None and location != run_dir:
                _check_run(found, location, run_dir)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        if found is not None:
            if problems:
                _log.warning("%s Looking in '%s' instead.", " ".join(problems), location)
            return f"{location}/{found[0]}", found[1]
    # No checkpoint anywhere is a new run. Checkpoints that all failed are not.
    if problems:
        raise CheckpointError(" ".join(problems))
    return None


def check_owner(store: CheckpointStore, run_dir: str | Path) -> None:
    """Reject a store outside of a run's directory that belongs to another run.

    Raises:
        CheckpointError: If it does.
    """
    # Where there is no run, somebody looks into the store alone.
    if not is_url(run_dir) and RunDir(Path(run_dir)).can_be_continued():
        store.check_owner(run_dir, read_identity(RunDir(Path(run_dir))).run_id)


def _check_run(found: tuple[str, dict[str, object]], location: str, run_dir: str) -> None:
    """Reject another run's checkpoint in a store that runs may share."""
    saved_by, own = as_id(found[1].get("run_id")), read_identity(RunDir(Path(run_dir))).run_id
    if None not in (saved_by, own) and saved_by != own:
        raise CheckpointError(
            f"'{location}/{found[0]}' is the newest checkpoint there, and was saved by run "
            f"{saved_by}, not by the run in '{run_dir}' ({own}). To continue it nevertheless, name "
            "it with resume=."
        )


def own_locations(run_dir: str | Path, stores: Sequence[str]) -> list[str]:
    """List where a run keeps checkpoints, without the stores that belong to another run."""
    found = [str(run_dir)]
    for location in stores:
        try:
            check_owner(CheckpointStore(location), run_dir)
        except CheckpointError as error:
            _log.warning("%s They are left out.", error)
        else:
            found.append(location)
    return found


def search_locations(run_dir: str, stores: Sequence[str] = ()) -> list[tuple[str, str | None]]:
    """List where a run's checkpoints are, each location with the checkpoint to try first.

    Only locations that the user named are listed: the run's directory and ``stores``. The file
    ``last_checkpoint`` chooses among them and never adds one.
    """
    if is_url(run_dir):
        return [(run_dir, None)]
    pointer = RunDir(Path(run_dir)).last_pointer
    if pointer is None:
        return [(location, None) for location in (run_dir, *stores)]
    # An empty name keeps the other stores from trying their own `last_checkpoint` first: the
    # pointer of the run is newer than theirs.
    if pointer.location is None:
        return [(run_dir, None), *((store, "") for store in stores)]
    location = trusted_location(pointer, run_dir, stores)
    rest = [store for store in (run_dir, *stores) if store != location]
    return [(location, pointer.name), *((store, "") for store in rest)]


def trusted_location(pointer: Pointer, run_dir: str, stores: Sequence[str]) -> str:
    """Return the user's own location that a pointer means, or reject the pointer."""
    # Anybody may have written the pointer, and opening a stranger's URL can run code. So what is
    # returned is always the user's own text, never the pointer's.
    for location in (run_dir, *stores):
        if is_same_location(location, str(pointer.location)):
            return location
    # The store may have been moved: then its own `last_checkpoint` agrees with the pointer.
    for location in stores:
        if CheckpointStore(location).last() == pointer.name:
            return location
    raise CheckpointError(
        f"'{run_dir}/{POINTER}' leads to '{pointer}', which is not a store of this run, so it is "
        "not opened. If you trust it, name it yourself: with resume= or checkpoint= in Python, or "
        "with --checkpoint on the command line. Or give that store to "
        "SaveCheckpoint(directory=...)."
    )
