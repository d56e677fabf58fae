"""`PublishCheckpoint`: write the result of a run in a form to share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from hookloop.checkpoint.choose import best_in, choose, search_locations
from hookloop.checkpoint.export.publish import Format, publish
from hookloop.checkpoint.export.publish_run import check_target, collect, write
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.runs.layout import RunDir
from hookloop.version import VERSION

if TYPE_CHECKING:
    from hookloop.checkpoint.store.index import Saved
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

WHICH = ("last", "best")


class PublishCheckpoint(Hook):
    """After the training, write its last and best checkpoints without what only a resume needs.

    The files are beside the checkpoints, named after them and after the first digits of their own
    SHA-256: ``epoch_5-1a2b3c4d.pth``. It needs a hook that saves, such as `SaveCheckpoint`.

    A single part is written as it is: ``model.load_state_dict(torch.load(path))`` takes it. Epoch,
    iteration and metrics are in the files too: ``torch.load(path).metadata``, or the entry
    ``hookloop`` in the header of a safetensors file. If the last checkpoint is also the best, there
    is one file for both.

    Args:
        keys: Parts to keep, for example ``["model", "averaged", "config"]``.
        which: ``"last"``, ``"best"`` or both.
        formats: ``"pth"``, ``"safetensors"`` (tensors only) or both.
        to: A directory, or ``"hf://user/model"`` for the Hugging Face hub. It gets ``config.yaml``
            and the weights of the best checkpoint, or of the last if there is no best; no files are
            written beside the checkpoints. If the run evaluated averaged weights, it gets those.
        card: Whether to write a model card, ``README.md``, there too.

    Example:
        >>> PublishCheckpoint(keys=["averaged"], which=["best"]).keys
        ('averaged',)
    """

    ranks = "first"
    priority = Priority.VERY_LOW
    on_error = "disable"  # The training is done; a copy that fails does not undo it.

    def __init__(
        self,
        keys: str | Sequence[str] = ("model",),
        *,
        which: str | Sequence[str] = WHICH,
        formats: Sequence[Format] = ("pth", "safetensors"),
        to: str | Path | None = None,
        card: bool = True,
    ) -> None:
        self.keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self.which = (which,) if isinstance(which, str) else tuple(which)
        self.formats = tuple(formats)
        for name, values, choices in (
            ("which", self.which, WHICH),
            ("formats", self.formats, get_args(Format)),
        ):
            for value in values:
                if value not in choices:
                    raise HookError(
                        f"PublishCheckpoint: {name} takes {' and '.join(choices)}, not '{value}'."
                        f"{nearest(value, choices)}"
                    )
        if not self.keys:
            raise HookError("PublishCheckpoint: keys names nothing to publish.")
        self.to = to
        self.card = card
        if to is not None:
            check_target(to, {})
        self._trained = False

    def before_run(self, run: Run) -> None:
        self._trained = False

    def before_train(self, run: Run) -> None:
        self._trained = True

    def after_run(self, run: Run) -> None:
        # At after_run, not after_train: the last checkpoint is durable only then. A failed or
        # interrupted run has no result yet.
        if not self._trained or run.outcome.status not in ("completed", "stopped"):
            return
        # Checkpoints may be in other stores too, which only the hooks that save know.
        stores = run.stores
        if self.to is not None:
            self._publish_to(run, self.to, stores)
            return
        for location, last in search_locations(str(run.dir), stores):
            store = CheckpointStore(location)
            for names in self._chosen(store, last):
                about = _metadata(store.index.entries.get(names[0]), names)
                written = publish(store, names[0], self.keys, self.formats, about)
                _log.info("Published '%s' as %s.", names[0], ", ".join(written))

    def _publish_to(self, run: Run, to: str | Path, stores: Sequence[str]) -> None:
        chosen = choose(run.dir, None if "best" in self.which else "last", stores)
        summary = {
            **RunDir(run.dir).read_summary(),
            "status": run.outcome.status,
            "metrics": run.metrics.all_latest(),
        }
        made = collect(
            run.dir, chosen, run.config, format=self.formats[-1], card=self.card, summary=summary
        )
        # Its own earlier files are replaced: a resumed run publishes again.
        _log.info("Published %s to '%s'.", chosen, write(made, to))

    def _chosen(self, store: CheckpointStore, last: str | None) -> list[list[str]]:
        """Return the names of the checkpoints to publish, one list of names per file."""
        entries = store.index.entries
        ranked = best_in(entries.values()).values()
        lower = {entry.name for of_metric in ranked for entry in of_metric[1:]}
        best = [e.name for e in entries.values() if e.kind == "best" and e.name not in lower]
        newest = last if last is not None else store.last()
        chosen = [newest] if newest and "last" in self.which else []
        by_content: dict[object, list[str]] = {}
        for name in dict.fromkeys([*chosen, *(best if "best" in self.which else [])]):
            saved = entries.get(name)
            # The best checkpoint is often a regular one under a second name.
            content = (saved.iter, saved.size, saved.crc32) if saved is not None else name
            by_content.setdefault(content, []).append(name)
        return list(by_content.values())


def _metadata(saved: Saved | None, names: Sequence[str]) -> dict[str, object]:
    """Return the metadata of a published file."""
    about: dict[str, object] = {"hookloop": VERSION, "checkpoints": list(names)}
    return about if saved is None else about | saved.describe()
