"""`PublishCheckpoint`: the run's result, ready to be given away."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from hookloop.checkpoint.newest import places_of
from hookloop.checkpoint.publish import Format, publish
from hookloop.checkpoint.store import CheckpointStore
from hookloop.core.hook import Hook
from hookloop.core.priority import Priority
from hookloop.errors import HookError, nearest

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")

WHICH = ("last", "best")


class PublishCheckpoint(Hook):
    """When the training is over, write its last and best checkpoints without what others need not.

    The files stand beside the checkpoints, named after these and after the first digits of their
    own SHA-256: ``epoch_5-1a2b3c4d.pth``. They need a hook that saves, such as `SaveCheckpoint`.

    Args:
        keys: Parts to keep, for example ``["model", "averaged", "config"]``.
        which: ``"last"``, ``"best"`` or both.
        formats: ``"pth"``, ``"safetensors"`` (tensors only) or both.

    Example:
        >>> PublishCheckpoint(keys=["averaged"], which=["best"]).keys
        ('averaged',)
    """

    priority = Priority.VERY_LOW
    on_error = "disable"

    def __init__(
        self,
        keys: str | Sequence[str] = ("model",),
        *,
        which: str | Sequence[str] = WHICH,
        formats: Sequence[Format] = ("pth", "safetensors"),
    ) -> None:
        self.keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self.which = (which,) if isinstance(which, str) else tuple(which)
        self.formats = tuple(formats)
        for name, values, known in (
            ("which", self.which, WHICH),
            ("formats", self.formats, get_args(Format)),
        ):
            for value in values:
                if value not in known:
                    raise HookError(
                        f"PublishCheckpoint: {name} takes {' and '.join(known)}, not '{value}'."
                        f"{nearest(value, known)}"
                    )
        if not self.keys:
            raise HookError("PublishCheckpoint: keys names nothing to publish.")
        self._trained = False

    def before_run(self, run: Run) -> None:
        self._trained = False

    def before_train(self, run: Run) -> None:
        self._trained = True

    def after_run(self, run: Run) -> None:
        if not self._trained or run.outcome.status not in ("completed", "stopped"):
            return
        if run.world.is_main:
            stores = [store for hook in run.hooks for store in hook.stores(run.dir)]
            for place, last in places_of(str(run.dir), stores):
                store = CheckpointStore(place)
                for name in self._chosen(store, last):
                    written = publish(store, name, self.keys, self.formats)
                    _log.info("Published '%s' as %s.", name, ", ".join(written))

    def _chosen(self, store: CheckpointStore, last: str | None) -> list[str]:
        """Name the checkpoints of a store to publish, each once."""
        best = [one.name for one in store.index.entries.values() if one.kind == "best"]
        name = last if last is not None else store.last()
        chosen = [name] if name and "last" in self.which else []
        return [*chosen, *(best if "best" in self.which else [])]
