"""`PublishCheckpoints`: files with a few keys only, named after their content."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from hookloop import CheckpointStore, Hook, Priority
from hookloop.dialects import facade_in, write_bytes
from hookloop_mmengine.checkpoint_view import meta_of

if TYPE_CHECKING:
    from hookloop import Run
    from hookloop_mmengine.hooks.checkpoint_hook import CheckpointHook
    from hookloop_mmengine.hooks.keep_checkpoints import KeepCheckpoints

# MMEngine's key -> ours.
_OURS = {"state_dict": "model", "optimizer": "optimizers", "param_schedulers": "schedules"}


class PublishCheckpoints(Hook):
    """Write ``<name>-<first 8 digits of its SHA-256>.pth`` for the last and the best files.

    Args:
        settings: The hook with the settings.
        keep: The hook that knows the names of the files.
    """

    name = "checkpoint_hook_publish"
    priority = Priority.VERY_LOW

    def __init__(self, settings: CheckpointHook, keep: KeepCheckpoints) -> None:
        self._settings = settings
        self._keep = keep

    def after_run(self, run: Run) -> None:
        """Publish the files; only at the end of the run all of them are on disk."""
        # MMEngine publishes at the end of the training, which a failed run does not reach.
        if run.outcome.status not in ("completed", "stopped") or not run.world.is_main:
            return
        names = [*self._keep.best.values()]
        if self._settings.save_last and self._keep.last is not None:
            names.insert(0, self._keep.last)
        directory = Path(self._keep.directory(run) or run.dir)
        for name in names:
            if (directory / name).is_file():
                self._publish(run, directory / name)

    def _publish(self, run: Run, path: Path) -> None:
        checkpoint = CheckpointStore(path.parent).read(path.name)
        checkpoint.setdefault("meta", _meta(run, checkpoint))
        kept = {}
        for key in self._settings.published_keys:
            # MMEngine's keys are there only in files of its Runner.
            found = key if key in checkpoint else _OURS.get(key, key)
            if found in checkpoint:
                kept[key] = checkpoint[found]
        buffer = io.BytesIO()
        torch.save(kept, buffer)
        # Of the bytes on disk, so that the name can be checked with sha256sum.
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:8]
        write_bytes(path.with_name(f"{path.stem}-{digest}.pth"), buffer.getvalue())


def _meta(run: Run, checkpoint: Mapping[str, object]) -> dict[str, object]:
    """Return MMEngine's entry ``meta`` for a checkpoint of ours, with the counters of that file."""
    from hookloop_mmengine.facade import RunnerFacade

    counters = cast("Mapping[str, object]", checkpoint.get("progress", {}))
    own = {name: counters[name] for name in ("epoch", "iter") if name in counters}
    return meta_of(facade_in(run, RunnerFacade)) | own
