"""`PublishCheckpoints`: files with chosen keys only, named after their content."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hookloop.checkpoint.store import load
from hookloop.core.hook import Hook, Priority
from hookloop.runs.files import write_bytes

if TYPE_CHECKING:
    from hookloop.core.run import Run
    from hookloop.dialects.mmengine.hooks.checkpoint_hook import CheckpointHook
    from hookloop.dialects.mmengine.hooks.keep_checkpoints import KeepCheckpoints

_OURS = {"state_dict": "model", "optimizer": "optimizers", "param_schedulers": "schedules"}


class PublishCheckpoints(Hook):
    """Make ``<name>-<first 8 digits of its SHA-256>.pth`` of the last and the best files.

    Args:
        said: The settings.
        keep: Knows which files there are.
    """

    name = "checkpoint_hook_publish"
    priority = Priority.VERY_LOW

    def __init__(self, said: CheckpointHook, keep: KeepCheckpoints) -> None:
        self._said = said
        self._keep = keep

    def after_run(self, run: Run) -> None:
        """Publish; not before the run's end are all files durable."""
        if run.outcome.status not in ("completed", "stopped") or not run.world.is_main:
            return
        names = [*self._keep.best.values()]
        if self._said.save_last and self._keep.last is not None:
            names.insert(0, self._keep.last)
        home = Path(self._keep.place(run) or run.dir)
        for name in names:
            if (home / name).is_file():
                self._publish(home / name)

    def _publish(self, path: Path) -> None:
        checkpoint = load(path)
        kept = {}
        for key in self._said.published_keys:
            found = key if key in checkpoint else _OURS.get(key, key)
            if found in checkpoint:
                kept[key] = checkpoint[found]
        buffer = io.BytesIO()
        torch.save(kept, buffer)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:8]
        write_bytes(path.with_name(f"{path.stem}-{digest}.pth"), buffer.getvalue())
