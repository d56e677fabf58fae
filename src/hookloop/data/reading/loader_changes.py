"""Follow what a hook changes in the user's `DataLoader`, which is read through a copy.

A hook may set ``dataset.pipeline``, ``collate_fn`` or the data set in the middle of a run. All of
it has to reach the copy. Persistent workers see it when `Stream.restart_workers` was called.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import cast

from torch.utils.data import DataLoader

from hookloop.data.reading.none_samples import naming
from hookloop.data.reading.workers import ShieldedInit, WorkerInit

# What belongs to one loader: its workers, and whether torch lets its attributes be set.
_PRIVATE = ("_iterator", "_DataLoader__initialized")


class LoaderChanges:
    """The user's loader, compared with what it was when its copy was made.

    Args:
        loader: The user's loader.

    Attributes:
        has_workers: Whether persistent workers are in use, or a resume will start them.
    """

    def __init__(self, loader: DataLoader[object]) -> None:
        self._loader = loader
        self._seen = self._settings()
        self.has_workers = False

    def take_changes(self) -> dict[str, object]:
        """Return the attributes that were set since the last call."""
        now = self._settings()
        changes = {
            name: value
            for name, value in now.items()
            if name not in self._seen or self._seen[name] is not value
        }
        self._seen = now
        return changes

    def note_start(self, copied: DataLoader[object]) -> None:
        """Remember whether the copy has persistent workers."""
        self.has_workers |= copied.__dict__["_iterator"] is not None

    def expect_workers(self) -> None:
        """Remember persistent workers that a resume will start."""
        self.has_workers = self._loader.persistent_workers

    def note_end(self) -> None:
        """Remember that the workers have ended."""
        self.has_workers = False

    def _settings(self) -> dict[str, object]:
        attributes = self._loader.__dict__
        return {name: value for name, value in attributes.items() if name not in _PRIVATE}


def shielded_copy(loader: DataLoader[object]) -> DataLoader[object]:
    """Copy a loader so that its workers ignore the signals that end a run."""
    copied = copy.copy(loader)
    attributes = naming(vars(loader), has_workers=loader.num_workers > 0)
    copied.__dict__.update(shielded(attributes), _iterator=None)
    return copied


def shielded(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return attributes of a loader with a worker_init_fn that ignores those signals."""
    if "worker_init_fn" not in attributes:
        return dict(attributes)
    init = ShieldedInit(cast("WorkerInit | None", attributes["worker_init_fn"]))
    return {**attributes, "worker_init_fn": init}
