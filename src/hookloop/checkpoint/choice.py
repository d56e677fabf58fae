"""Choose a checkpoint of a run, to use its weights: the best, the last, or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite, isnan
from pathlib import Path
from typing import cast

from torch import Tensor

from hookloop.checkpoint.named import BEST, LAST, load_best, load_named
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import CheckpointError
from hookloop.runs.identity import as_id
from hookloop.runs.policy import OF_ONE_DIRECTORY
from hookloop.runs.records import to_json
from hookloop.version import VERSION

WEIGHTS = ("averaged", "model", "state_dict")
"""Where the weights are in a file: the averaged ones first, with which the run evaluated."""


@dataclass(frozen=True)
class Chosen:
    """A checkpoint and its weights.

    Attributes:
        path: Its path or URL.
        kind: ``best``, ``last`` or ``file``.
        part: Which weights: ``averaged``, ``model``, or ``file`` if it holds nothing else.
        weights: The tensors by name.
        saved: What the index says about it, if it is listed.
        iteration: Iterations completed in it.
        metrics: The metrics of that iteration that are numbers, by their full names.
        others: Other checkpoints that are the best by another metric.
        run_id: The run that saved it, if the file says so.
    """

    path: str
    kind: str
    part: str
    weights: Mapping[str, object]
    saved: Saved | None = None
    iteration: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    run_id: str | None = None

    def __str__(self) -> str:
        words = "averaged weights" if self.part == "averaged" else "weights"
        where = f", iteration {self.saved.iter:,}" if self.saved is not None else ""
        kind = "" if self.kind == "file" else f" ({self.kind}{where})"
        run = f", of run {self.run_id}" if self.run_id is not None else ""
        return f"{words} of '{self.path}'{kind}{run}"


def choose(run_dir: Path, wanted: str | None = None, stores: Sequence[str] = ()) -> Chosen:
    """Read a checkpoint of a run.

    Args:
        run_dir: The run's directory.
        wanted: ``"best"``, ``"last"``, or a path or URL; by default the best where one is kept,
            else the last.
        stores: Where else the run keeps checkpoints.

    Raises:
        CheckpointError: If there is no such checkpoint, or it is damaged.
    """
    if wanted in (None, BEST) and (loaded := load_best(run_dir, stores)) is not None:
        path, content, (saved, *rest) = loaded
        others = tuple(one.name for one in rest if one.iter != saved.iter)
        return _chosen(path, BEST, content, saved, others)
    if wanted is not None and wanted.endswith(".safetensors"):
        return _tensors(run_dir, wanted)
    path, content = load_named(wanted or LAST, run_dir, stores)
    location, _, name = path.rpartition("/")
    entry = CheckpointStore(location or ".").index.entries.get(name)
    return _chosen(path, LAST if wanted in (None, LAST) else "file", content, entry)


def describe_weights(chosen: Chosen, config: Mapping[str, object]) -> dict[str, object]:
    """Return what a file made of these weights says about itself: plain values.

    Args:
        chosen: The weights.
        config: The effective config, with secrets as references.
    """
    about: dict[str, object] = {
        "hookloop": VERSION,
        "checkpoint": chosen.path.rpartition("/")[2],
        "weights": chosen.part,
        "config_sha256": hash_of(config),
    }
    if chosen.run_id is not None:
        about["run_id"] = chosen.run_id
    if chosen.saved is not None:
        # JSON has neither NaN nor infinity.
        metrics = {name: value for name, value in chosen.saved.metrics.items() if isfinite(value)}
        about |= {"epoch": chosen.saved.epoch, "iter": chosen.saved.iter, "metrics": metrics}
    return about


def hash_of(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of a config, without what only one directory has."""
    kept = {name: value for name, value in config.items() if name not in OF_ONE_DIRECTORY}
    return sha256(to_json(kept).encode()).hexdigest()


def _chosen(
    path: str,
    kind: str,
    content: Mapping[str, object],
    saved: Saved | None,
    others: tuple[str, ...] = (),
) -> Chosen:
    progress = content.get("progress")
    iteration = progress.get("iter", 0) if isinstance(progress, Mapping) else 0
    # The index has the metrics of the validation too, which came after the save.
    known = saved.metrics if saved is not None else content.get("metrics")
    metrics = {
        str(name): value
        for name, value in (known.items() if isinstance(known, Mapping) else ())
        if isinstance(value, int | float) and not isnan(value)
    }
    run_id = as_id(content.get("run_id"))
    weights = _weights(path, content)
    return Chosen(path, kind, *weights, saved, int(iteration), metrics, others, run_id)


def _tensors(run_dir: Path, wanted: str) -> Chosen:
    """Read a file of tensors alone, in the run's directory or elsewhere."""
    from safetensors.torch import load_file

    own = run_dir / wanted
    path = str(own) if "/" not in wanted and own.exists() else wanted
    try:
        return Chosen(path, "file", "file", load_file(path))
    except Exception as error:
        raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error


def _weights(path: str, content: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Return which weights of a checkpoint to use, and the weights."""
    for part in WEIGHTS:
        if isinstance(found := content.get(part), Mapping):
            return part, cast("Mapping[str, object]", found)
    if content and all(isinstance(value, Tensor) for value in content.values()):
        return "file", content
    raise CheckpointError(
        f"'{path}' has no weights under {' or '.join(WEIGHTS)}: it has "
        f"{', '.join(map(str, content)) or 'nothing'}."
    )
