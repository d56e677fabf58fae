"""A checkpoint under MMEngine's keys; what a hook changes in it goes into ours."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hookloop.dialects.mmengine.facade import RunnerFacade

VERSION = "0.10.7"
"""The version of MMEngine whose behaviour is followed."""

_OURS = {"state_dict": "model", "param_schedulers": "schedules", "optimizer": "optimizers"}


@contextmanager
def checkpoint_view(
    runner: RunnerFacade, checkpoint: MutableMapping[str, object]
) -> Iterator[dict[str, object]]:
    """Show a checkpoint to an MMEngine hook as that system's own dict.

    ``state_dict`` is our ``model`` and ``optimizer`` the only one of our ``optimizers``. Entries
    that the hook replaces are replaced in ours, and those that it adds are kept.
    """
    shown = {key: value for key, value in checkpoint.items() if key not in _OWN}
    shown["state_dict"] = checkpoint.get("model", checkpoint.get("state_dict"))
    shown.setdefault("meta", meta_of(runner))
    shown.setdefault("message_hub", runner.message_hub.state_dict())
    for key in ("param_schedulers", "optimizer"):
        parts = checkpoint.get(_OURS[key])
        if isinstance(parts, Mapping) and parts:
            shown[key] = list(parts.values()) if key == "param_schedulers" else _only(parts)
    before = dict(shown)
    yield shown
    for key, value in shown.items():
        if key not in before or value is not before[key]:
            _replace(checkpoint, key, value)
    for key in before.keys() - shown.keys():
        checkpoint.pop(_OURS.get(key, key), None)


def _replace(checkpoint: MutableMapping[str, object], key: str, value: object) -> None:
    if key == "state_dict":
        checkpoint["model"] = value
    elif key == "optimizer":
        names = cast("Mapping[str, object]", checkpoint["optimizers"])
        checkpoint["optimizers"] = {next(iter(names)): value} if len(names) == 1 else value
    elif key not in ("param_schedulers", "message_hub"):  # They are kept by their own hooks.
        checkpoint[key] = value


_OWN = (
    "model", "optimizers", "schedules", "scaler", "progress", "data", "metrics", "hooks", "rng",
    "kinds", "config", "versions",
)  # fmt: skip


def meta_of(runner: RunnerFacade) -> dict[str, object]:
    """Describe a checkpoint as MMEngine does; counters are those of completed things."""
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
