"""A view of a checkpoint with MMEngine's keys; changes in the view go into the checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hookloop_mmengine.facade import RunnerFacade

VERSION = "0.10.7"
"""The version of MMEngine whose behaviour is followed."""

# MMEngine's key -> ours.
_OURS = {"state_dict": "model", "param_schedulers": "schedules", "optimizer": "optimizers"}


@contextmanager
def checkpoint_view(
    runner: RunnerFacade, checkpoint: MutableMapping[str, object]
) -> Iterator[dict[str, object]]:
    """Yield a checkpoint as the dict that an MMEngine hook expects.

    ``state_dict`` is our ``model``, and ``optimizer`` is the only one of our ``optimizers``.
    Entries that the hook adds, replaces or removes are added, replaced or removed in ours.
    """
    view = {key: value for key, value in checkpoint.items() if key not in _NATIVE_KEYS}
    view["state_dict"] = checkpoint.get("model", checkpoint.get("state_dict"))
    view.setdefault("meta", meta_of(runner))
    view.setdefault("message_hub", runner.message_hub.state_dict())
    for key in ("param_schedulers", "optimizer"):
        parts = checkpoint.get(_OURS[key])
        if isinstance(parts, Mapping) and parts:
            view[key] = list(parts.values()) if key == "param_schedulers" else _only(parts)
    before = dict(view)
    yield view
    for key, value in view.items():
        # Identity, because comparing tensors is costly; in-place changes are seen in ours anyway.
        if key not in before or value is not before[key]:
            _replace(checkpoint, key, value)
    # A hook may drop the optimizer to make files smaller.
    for key in before.keys() - view.keys():
        checkpoint.pop(_OURS.get(key, key), None)


def _replace(checkpoint: MutableMapping[str, object], key: str, value: object) -> None:
    if key == "state_dict":
        checkpoint["model"] = value
    elif key == "optimizer":
        names = cast("Mapping[str, object]", checkpoint["optimizers"])
        checkpoint["optimizers"] = {next(iter(names)): value} if len(names) == 1 else value
    elif key not in ("param_schedulers", "message_hub"):  # Other hooks save and restore these.
        checkpoint[key] = value


_NATIVE_KEYS = (
    "model", "optimizers", "schedules", "scaler", "progress", "data", "metrics", "hooks", "rng",
    "kinds", "arguments", "changes", "config", "versions",
)  # fmt: skip


def meta_of(runner: RunnerFacade) -> dict[str, object]:
    """Return the ``meta`` of a checkpoint; its counters count completed epochs and iterations."""
    progress = runner.run.progress
    return {
        "cfg": str(getattr(runner.cfg, "pretty_text", "")),
        "seed": runner.seed,
        "experiment_name": runner.experiment_name,
        "time": time.strftime("%Y%m%d_%H%M%S"),
        "mmengine_version": VERSION,
        "epoch": 0 if runner.is_iter_based else progress.epoch,
        "iter": progress.iter,
    }


def _only(parts: Mapping[str, object]) -> object:
    return next(iter(parts.values())) if len(parts) == 1 else dict(parts)
