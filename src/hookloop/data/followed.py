"""Follow what a hook changes in the user's `DataLoader`, which is read through a copy.

Hooks of other projects switch a pipeline in the middle of a run: they set ``dataset.pipeline``, and
with persistent workers also ``loader._iterator = None``, so that the workers start again with the
new one. Others set ``collate_fn`` or the data set. All of it has to reach the copy.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import cast

from torch.utils.data import DataLoader

from hookloop.data.none_samples import naming
from hookloop.data.workers import ShieldedInit, WorkerInit

# What belongs to one loader: its workers, and whether torch lets its attributes be set.
_PRIVATE = ("_iterator", "_DataLoader__initialized")


class InUse:
    """What the user's loader has as ``_iterator`` while the copy has persistent workers.

    If it is gone, a hook asked for new workers. A user who reads the loader itself meanwhile gets
    workers of their own.
    """

    def __init__(self) -> None:
        self._own: Iterator[object] | None = None

    @property
    def has_own(self) -> bool:
        """Whether the user has read the loader itself, which started workers of their own."""
        return self._own is not None

    def _reset(self, loader: DataLoader[object], first_iter: bool = False) -> None:
        """Start a pass of the user's own, as torch does with the iterator it expects here."""
        if self._own is None:
            self._own = cast("Iterator[object]", loader._get_iterator())
        else:
            self._own._reset(loader, first_iter)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        if self._own is None:
            raise StopIteration
        return next(self._own)


class Followed:
    """The user's loader, compared with what it was when its copy was made.

    Args:
        loader: The user's loader.
    """

    def __init__(self, loader: DataLoader[object]) -> None:
        self._loader = loader
        self._seen = self._settings()
        self._mark: InUse | None = None

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

    @property
    def wants_new_workers(self) -> bool:
        """Whether a hook has removed the iterator of persistent workers."""
        return self._mark is not None and self._loader.__dict__["_iterator"] is not self._mark

    def note_start(self, copied: DataLoader[object]) -> None:
        """Show on the user's loader that its copy has persistent workers."""
        if copied.__dict__["_iterator"] is not None:
            self.expect_workers()

    def expect_workers(self) -> None:
        """Show persistent workers on the user's loader, also those that a resume will start."""
        if self._mark is None:
            self._mark = self._loader.__dict__["_iterator"] = InUse()

    def note_end(self) -> None:
        """Show on the user's loader that the workers have ended."""
        if self._mark is not None and self._loader.__dict__["_iterator"] is self._mark:
            self._loader.__dict__["_iterator"] = self._mark._own
        self._mark = None

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
