"""The way of a checkpoint: gathered, shown to hooks, copied in memory, written beside the training.

Training waits for the copy in memory alone. What became durable is reported to hooks by the loop at
its next safe place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.checkpoint.background import BackgroundSaver, Job
from hookloop.checkpoint.request import Save
from hookloop.checkpoint.snapshot import Snapshot
from hookloop.checkpoint.store import LAST, CheckpointStore, Saved
from hookloop.core.plan import fire
from hookloop.core.state import gather
from hookloop.runs.layout import write_text

if TYPE_CHECKING:
    import torch

    from hookloop.core.run import Requests, Run


class Saver:
    """Makes the checkpoints of a run.

    Args:
        scaler: The loss scaler of half precision, if there is one.
    """

    def __init__(self, scaler: torch.amp.GradScaler | None) -> None:
        self._scaler = scaler
        self._snapshot = Snapshot()
        self._stores: dict[str, CheckpointStore] = {}
        self._requests: Requests | None = None
        self._background = BackgroundSaver(self._announce)

    @property
    def problem(self) -> str | None:
        """Why the newest checkpoint could not be saved, or None."""
        return self._background.problem

    def save(self, run: Run, save: Save) -> None:
        """Take the run as it stands and let it be written; or keep what is written as the best."""
        self._requests = run.requests
        place = save.place or str(run.dir)
        store = self._stores.setdefault(place, CheckpointStore(place))
        saved = Saved(
            save.name,
            place,
            run.progress.iter,
            run.progress.epoch,
            kind=save.kind,
            owner=save.owner,
            metrics=save.metrics,
        )
        work = _promoting(store, saved, save.of) if save.of else self._writing(run, save, saved)

        def durable() -> Saved:
            done = work()
            if save.kind in ("periodic", "other"):
                store.mark_last(save.name)
                if place != str(run.dir):
                    write_text(Path(run.dir) / LAST, f"{place}/{save.name}\n")
            store.prune(save.owner, save.kind, save.keep)
            return done

        self._background.submit(Job(f"{place}/{save.name}", durable, is_write=save.of is None))

    def _writing(self, run: Run, save: Save, saved: Saved) -> Callable[[], Saved]:
        """Copy the state in memory; what is returned writes the copy."""
        self._background.wait_for_room()
        checkpoint = gather(run, self._scaler)
        fire(run.plan.before_save_checkpoint, run, checkpoint)
        for part in save.leave_out:
            checkpoint.pop(part, None)
        snapshot, nbytes = self._snapshot.take(checkpoint), self._snapshot.nbytes
        store = self._stores[saved.place]
        return lambda: store.write(snapshot, saved, nbytes)

    def report(self, run: Run) -> None:
        """Tell hooks what has become durable."""
        for saved in self._background.finished():
            fire(run.plan.after_save_checkpoint, run, saved)

    def close(self, run: Run) -> None:
        """Wait until everything that can be saved is durable."""
        self._background.close()
        self.report(run)

    def _announce(self) -> None:
        if self._requests is not None:
            self._requests.any = True


def _promoting(store: CheckpointStore, saved: Saved, of: str) -> Callable[[], Saved]:
    return lambda: store.promote(of, saved)
