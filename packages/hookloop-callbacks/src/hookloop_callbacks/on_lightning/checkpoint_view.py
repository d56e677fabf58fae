"""A view of a checkpoint with Lightning's keys; changes in the view go into the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookloop import Run

VERSION = "2.6.6"
"""The version of Lightning whose behaviour is followed."""

OWN = "lightning"
"""Our entry of a checkpoint in which the entries are kept that callbacks add."""

_COUNTERS = ("epoch", "global_step", "pytorch-lightning_version")


@contextmanager
def checkpoint_view(
    run: Run, checkpoint: MutableMapping[str, object]
) -> Iterator[dict[str, object]]:
    """Yield a checkpoint as the dict that a callback expects.

    ``state_dict`` is our ``model``; ``optimizer_states`` and ``lr_schedulers`` are lists. What the
    callback adds is kept under its name and is there when the checkpoint is loaded.
    """
    kept = checkpoint.get(OWN)
    own = dict(kept) if isinstance(kept, Mapping) else {}
    view: dict[str, object] = {
        "epoch": run.progress.epoch,
        "global_step": run.progress.iter,
        "pytorch-lightning_version": VERSION,
        **own,
    }
    for theirs, ours in (("optimizer_states", "optimizers"), ("lr_schedulers", "schedules")):
        parts = checkpoint.get(ours)
        view[theirs] = list(parts.values()) if isinstance(parts, Mapping) else []
    if "model" in checkpoint:
        view["state_dict"] = checkpoint["model"]
    before = dict(view)
    yield view
    # By identity: comparing tensors is costly, and in-place changes are seen in ours anyway.
    if view.get("state_dict") is not before.get("state_dict"):
        checkpoint["model"] = view["state_dict"]
    reserved = (*_COUNTERS, "optimizer_states", "lr_schedulers", "state_dict")
    added = {key: value for key, value in view.items() if key not in reserved}
    if added:
        checkpoint[OWN] = added
    elif OWN in checkpoint:
        del checkpoint[OWN]
