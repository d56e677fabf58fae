"""`SaveCheckpoint`: when to save and what to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.store import CheckpointStore, Saved
from hookloop.core.hook import Hook
from hookloop.core.priority import Priority
from hookloop.errors import HookError
from hookloop.every import Every

if TYPE_CHECKING:
    from hookloop.core.run import Run


class SaveCheckpoint(Hook):
    """Ask for a checkpoint at an interval and at the end, and keep the newest ones.

    Files are named after what was completed: ``epoch_5.pth``, ``iter_500.pth``.

    Args:
        every: Interval in epochs, iterations or time.
        keep: How many of the newest to keep; None for all.
        last: Whether to save at the end of the training, if that was not just done.

    Example:
        >>> str(SaveCheckpoint(every="500 iters", keep=2).every)
        '500 iters'
    """

    priority = Priority.VERY_LOW

    def __init__(
        self, every: Every | int | str = "1 epoch", keep: int | None = 2, last: bool = True
    ) -> None:
        if keep is not None and keep < 1:
            raise HookError(
                f"SaveCheckpoint: keep must be at least 1, or None for all, not {keep}."
            )
        self.every = Every.parse(every)
        self.keep = keep
        self.last = last
        self._by_epoch = self.every.unit == "epochs"
        self._kept: list[str] = []
        self._saved_at = -1

    def state_dict(self) -> dict[str, object]:
        return {"kept": self._kept}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self._kept = list(cast("list[str]", state["kept"]))

    def after_train_iter(self, run: Run) -> None:
        if not self._by_epoch:
            self._ask(run, f"iter_{run.progress.iter}.pth")

    def after_train_epoch(self, run: Run) -> None:
        if self._by_epoch:
            self._ask(run, f"epoch_{run.progress.epoch}.pth")

    def after_train(self, run: Run) -> None:
        progress = run.progress
        if not self.last or self._saved_at == progress.iter:
            return
        at_epoch_end = self._by_epoch and progress.iter_in_epoch == progress.epoch_iters
        self._ask(
            run, f"epoch_{progress.epoch}.pth" if at_epoch_end else f"iter_{progress.iter}.pth"
        )

    def _ask(self, run: Run, name: str) -> None:
        # Named before the save, so that the file knows of itself when the run is resumed from it.
        self._kept = [*(kept for kept in self._kept if kept != name), name]
        self._saved_at = run.progress.iter
        run.save(name)

    def after_save_checkpoint(self, run: Run, saved: Saved) -> None:
        if self.keep is None or saved.name not in self._kept:
            return
        surplus, self._kept = self._kept[: -self.keep], self._kept[-self.keep :]
        CheckpointStore(run.dir).prune(surplus)
