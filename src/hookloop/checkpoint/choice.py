"""Choose a checkpoint of a run, to use its weights: the best, the last, or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import cast

from torch import Tensor

from hookloop.checkpoint.index import Saved
from hookloop.checkpoint.named import find_best, load_best
from hookloop.checkpoint.search import load_newest
from hookloop.checkpoint.store import CheckpointStore, load
from hookloop.errors import CheckpointError, nearest
from hookloop.runs.records import to_json
from hookloop.version import VERSION

BEST, LAST = "best", "last"
WEIGHTS = ("averaged", "model", "state_dict")
"""Where the weights are in a file: the averaged ones first, with which the run evaluated."""

OF_ONE_RUN = ("import_path", "run_dir", "resume")
"""Keys of a config that depend on where a run is."""


@dataclass(frozen=True)
class Chosen:
    """A checkpoint and its weights.

    Attributes:
        path: Its path or URL.
        kind: ``best``, ``last`` or ``file``.
        part: Which weights: ``averaged``, ``model``, or ``file`` if it holds nothing else.
        weights: The tensors by name.
        saved: What the index says about it, if it is listed.
        others: Other checkpoints that are the best by another metric.
    """

    path: str
    kind: str
    part: str
    weights: Mapping[str, object]
    saved: Saved | None = None
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = "averaged weights" if self.part == "averaged" else "weights"
        where = f", iteration {self.saved.iter:,}" if self.saved is not None else ""
        kind = "" if self.kind == "file" else f" ({self.kind}{where})"
        return f"{words} of '{self.path}'{kind}"


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
    if wanted is not None and wanted not in (BEST, LAST):
        return _file(run_dir, wanted)
    best = find_best(run_dir, stores) if wanted != LAST else {}
    if best:
        saved, content = load_best(best)
        others = tuple(one.name for one in best.values() if one.iter != saved.iter)
        path = f"{saved.location}/{saved.name}"
        return Chosen(path, BEST, *_weights(path, content), saved, others)
    if wanted == BEST:
        raise CheckpointError(
            f"'{run_dir}' keeps no best checkpoint: write 'last', or let SaveCheckpoint(best=...) "
            "keep one."
        )
    newest = load_newest(str(run_dir), stores)
    if newest is None:
        raise CheckpointError(f"'{run_dir}' has no checkpoint.")
    path, content = newest
    location, _, name = path.rpartition("/")
    saved_last = CheckpointStore(location).index.entries.get(name)
    return Chosen(path, LAST, *_weights(path, content), saved_last)


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
    if chosen.saved is not None:
        # JSON has neither NaN nor infinity.
        metrics = {name: value for name, value in chosen.saved.metrics.items() if isfinite(value)}
        about |= {"epoch": chosen.saved.epoch, "iter": chosen.saved.iter, "metrics": metrics}
    return about


def hash_of(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of a config, without what only one directory has."""
    kept = {name: value for name, value in config.items() if name not in OF_ONE_RUN}
    return sha256(to_json(kept).encode()).hexdigest()


def _file(run_dir: Path, wanted: str) -> Chosen:
    path = wanted
    # A name alone is that of a checkpoint of the run, before it is that of a file here.
    if "/" not in wanted and (run_dir / wanted).exists():
        path = str(run_dir / wanted)
    elif "/" not in wanted and not Path(wanted).exists():
        names = [file.name for file in run_dir.glob("*.pth")]
        raise CheckpointError(
            f"There is no checkpoint '{wanted}'.{nearest(wanted, [BEST, LAST, *names])}"
        )
    if path.endswith(".safetensors"):
        from safetensors.torch import load_file

        try:
            return Chosen(path, "file", "file", load_file(path))
        except Exception as error:
            raise CheckpointError(f"'{path}' cannot be loaded: {error}") from error
    content = load(path)
    location, _, name = path.rpartition("/")
    saved = CheckpointStore(location or ".").index.entries.get(name)
    return Chosen(path, "file", *_weights(path, content), saved)


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
