"""What a checkpoint holds: gathered from the run, and given back to it.

model        parameters and buffers
optimizers   by name
schedules    by name of their optimizer
scaler       of half precision, if there is one
progress     the counters
metrics      the metric store
hooks        by name
rng          Python, NumPy, torch
config       the effective config
versions     of hookloop and torch
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.rng import rng_state, set_rng_state
from hookloop.checkpoint.store import CheckpointStore, Saved, load
from hookloop.core.plan import fire
from hookloop.errors import CheckpointError
from hookloop.runs.records import plain
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.core.run import Run

State = MutableMapping[str, object]


class Checkpoints:
    """Saves and restores one run.

    Args:
        scaler: The loss scaler of half precision, if there is one.
    """

    def __init__(self, scaler: torch.amp.GradScaler | None) -> None:
        self.scaler = scaler

    def save(self, run: Run, name: str | None = None) -> Saved:
        """Write the run as it stands."""
        progress = run.progress
        checkpoint = self.gather(run)
        fire(run.plan.before_save_checkpoint, run, checkpoint)
        saved = CheckpointStore(run.dir).save(
            checkpoint,
            name or f"iter_{progress.iter}.pth",
            iter=progress.iter,
            epoch=progress.epoch,
        )
        fire(run.plan.after_save_checkpoint, run, saved)
        return saved

    def load(self, run: Run, path: Path) -> None:
        """Read a checkpoint, let hooks see it, and continue from it."""
        checkpoint = load(path)
        fire(run.plan.after_load_checkpoint, run, checkpoint)
        self.restore(run, checkpoint, path)

    def gather(self, run: Run) -> State:
        """Collect the state of everything that has one."""
        return {
            "model": run.model.state_dict(),
            "optimizers": {name: one.state_dict() for name, one in run.optimizers.items()},
            "schedules": {name: one.state_dict() for name, one in run.schedules.items()},
            "scaler": self.scaler.state_dict() if self.scaler is not None else None,
            "progress": run.progress.state_dict(),
            "metrics": run.metrics.state_dict(),
            "hooks": {hook.name: hook.state_dict() for hook in run.hooks},
            "rng": rng_state(),
            "config": plain(run.config),
            "versions": {"hookloop": VERSION, "torch": str(torch.__version__)},
        }

    def restore(self, run: Run, checkpoint: State, path: Path) -> None:
        """Give everything its state back."""
        _restore_model(run, checkpoint, path)
        for part, holders in (("optimizers", run.optimizers), ("schedules", run.schedules)):
            _restore_each(part, holders, _mapping(checkpoint, part, path), path)
        if self.scaler is not None and checkpoint.get("scaler"):
            self.scaler.load_state_dict(cast("dict[str, object]", checkpoint["scaler"]))
        run.progress.load_state_dict(_mapping(checkpoint, "progress", path))
        run.metrics.load_state_dict(_mapping(checkpoint, "metrics", path))
        states = _mapping(checkpoint, "hooks", path)
        for hook in run.hooks:
            if hook.name in states:
                hook.load_state_dict(cast("Mapping[str, object]", states[hook.name]))
        set_rng_state(_mapping(checkpoint, "rng", path))


def load_model(run: Run, path: Path) -> None:
    """Give the model alone the weights of a checkpoint."""
    _restore_model(run, load(path), path)


def _restore_model(run: Run, checkpoint: Mapping[str, object], path: Path) -> None:
    try:
        run.model.load_state_dict(
            cast("dict[str, torch.Tensor]", _mapping(checkpoint, "model", path))
        )
    except RuntimeError as error:
        raise CheckpointError(f"'{path}' is of another model. {error}") from error


def _restore_each(
    part: str, holders: Mapping[str, object], states: Mapping[str, object], path: Path
) -> None:
    if set(holders) != set(states):
        raise CheckpointError(
            f"'{path}' has the {part} {', '.join(states) or 'none'}, this run has "
            f"{', '.join(holders) or 'none'}: a resumed run needs the same."
        )
    for name, holder in holders.items():
        try:
            holder.load_state_dict(states[name])  # type: ignore[attr-defined]
        except ValueError as error:
            raise CheckpointError(f"'{path}': {part} '{name}' does not fit: {error}") from error


def _mapping(checkpoint: Mapping[str, object], key: str, path: Path) -> Mapping[str, object]:
    value = checkpoint.get(key)
    if not isinstance(value, Mapping):
        raise CheckpointError(f"'{path}' has no '{key}': it is no checkpoint of hookloop.")
    return value
