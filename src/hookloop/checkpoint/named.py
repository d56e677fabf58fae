"""Find a checkpoint of a run by what it is: the best, the last, or one with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hookloop.checkpoint.saving.retention import first_to_stay
from hookloop.checkpoint.search import load_newest, own_locations
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.storage import is_checkpoint_directory, is_url
from hookloop.checkpoint.store.store import CheckpointStore, load
from hookloop.errors import CheckpointError, nearest
from hookloop.runs.checkpoint_names import is_checkpoint_name
from hookloop.runs.layout import RunDir

BEST, LAST = "best", "last"
Found = tuple[str, dict[str, object]]
"""Where a checkpoint is, and what it holds."""


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
        return cls(f"{saved.location}/{saved.name}", full, value, saved.iter, saved.epoch)

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


def load_named(
    which: str | Path, run_dir: str | Path, stores: Sequence[str] = (), first: str | None = None
) -> Found:
    """Load the best checkpoint of a run, its last one, or the one with a name or a path.

    Args:
        which: ``"best"``, ``"last"``, the name of a checkpoint of the run, a path or a URL.
        run_dir: The run's directory.
        stores: The other locations in which the run keeps checkpoints.
        first: The metric that decides where a best of several metrics is kept.

    Raises:
        CheckpointError: If there is no such checkpoint; it lists those that there are.
    """
    if which == LAST:
        newest = load_newest(str(run_dir), stores)
        return newest if newest is not None else _reject(which, run_dir, stores)
    if which == BEST:
        loaded = load_best(run_dir, stores, first)
        return loaded[:2] if loaded is not None else _reject(which, run_dir, stores)
    name = str(which)
    for location in own_locations(run_dir, stores) if "/" not in name else ():
        if name in CheckpointStore(location).storage.names():
            return f"{location}/{name}", CheckpointStore(location).read(name)
    if is_url(name) or Path(name).is_file() or is_checkpoint_directory(Path(name)):
        return name, load(name)
    return _reject(which, run_dir, stores)


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


def load_best(
    run_dir: str | Path, stores: Sequence[str] = (), first: str | None = None
) -> tuple[str, dict[str, object], list[Saved]] | None:
    """Load the best checkpoint of a run, if it keeps one; the arguments are those of `load_named`.

    Returns:
        Where it is, what it holds, and the entries of all best checkpoints, its own in front.
    """
    best = find_best(run_dir, stores)
    if not best:
        return None
    metric = first if first in best else next(iter(best))
    checkpoint = _read(best[metric])
    if len(best) > 1 and first is None and (main := _main_metric(checkpoint, best)) != metric:
        metric = main
        checkpoint = _read(best[metric])
    saved = best.pop(metric)
    return f"{saved.location}/{saved.name}", checkpoint, [saved, *best.values()]


def _read(saved: Saved) -> dict[str, object]:
    return CheckpointStore(saved.location).read(saved.name)


def _main_metric(checkpoint: Mapping[str, object], best: Mapping[str, Saved]) -> str:
    """Return the metric that the run's own hook named first, as its state in a checkpoint says."""
    states = checkpoint.get("hooks")
    for state in states.values() if isinstance(states, Mapping) else ():
        named = state.get("auto") if isinstance(state, Mapping) else None
        for metric in named if isinstance(named, list) else ():
            if metric in best:
                return cast("str", metric)
    return next(iter(best))


def _reject(which: str | Path, run_dir: str | Path, stores: Sequence[str]) -> Found:
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
    what = f"'{run_dir}' has no checkpoint '{which}'.{nearest(str(which), [BEST, LAST, *names])}"
    if which in (BEST, LAST):
        what = f"'{run_dir}' keeps no {which} checkpoint."
    advice = " SaveCheckpoint(best=...) keeps the best." if which == BEST else ""
    raise CheckpointError(f"{what} {there}{advice}", argument="checkpoint")
