"""`CheckPointHook`: save checkpoints under iMIX's names."""

from __future__ import annotations

from hookloop import Save
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase


class CheckPointHook(HookBase):
    """Save the run by epochs, within them, or by iterations, and at the end.

    By epoch the files are ``<prefix>_epoch<e>_model.pth``, within one
    ``<prefix>_epoch<e>_iter<i>_model.pth``, by iteration ``<prefix>_iter<i>_model.pth``; the last
    is ``<prefix>_model_final.pth``. Epochs count from 0.

    Args:
        checkpointer: Not used, because the engine writes.
        prefix: Prefix of the names.
        iter_period: Iterations between two files; None for none.
        epoch_period: Epochs between two files.
        max_iter: Iterations of the run; by default the run's own.
        max_epoch: Epochs of the run; by default the run's own.
        max_num_checkpoints: Number of newest files to keep, not counting the final one.
    """

    def __init__(
        self,
        checkpointer: object = None,
        prefix: str = "model",
        iter_period: int | None = None,
        epoch_period: int = 1,
        max_iter: int | None = None,
        max_epoch: int | None = None,
        max_num_checkpoints: int | None = None,
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.iter_period = iter_period
        self.epoch_period = epoch_period
        self.max_iter = max_iter
        self.max_epoch = max_epoch
        self.max_num_checkpoints = max_num_checkpoints
        self.curr_checkpoint_name: str | None = None

    def after_train_iter(self) -> None:
        trainer, period = self.trainer, self.iter_period
        if period is not None and (trainer.iter + 1) % period == 0:
            # iMIX counts from 1 in the first kind of name and from 0 in the second.
            if trainer.by_epoch:
                self._save(f"epoch{trainer.epoch}_iter{trainer.iter + 1}_model")
            else:
                self._save(f"iter{trainer.iter:07d}_model")
        if not trainer.by_epoch:
            self._save_last(trainer.iter + 1, self.max_iter or trainer.max_iter)

    def after_train_epoch(self) -> None:
        trainer = self.trainer
        if (trainer.epoch + 1) % self.epoch_period == 0:
            self._save(f"epoch{trainer.epoch}_model")
        self._save_last(trainer.epoch + 1, self.max_epoch or trainer.max_epoch)

    def _save(self, name: str) -> None:
        self.curr_checkpoint_name = f"{self.prefix}_{name}.pth"
        # Retention counts the files of one owner, so two of these hooks do not disturb each other.
        owner, keep = self.trainer.hook, self.max_num_checkpoints
        self.trainer.run.save(
            Save(self.curr_checkpoint_name, kind="periodic", owner=owner, keep=keep),
            everywhere=True,
        )

    def _save_last(self, done: int, limit: int | None) -> None:
        # Without `keep`, so that it does not count among the newest and is never removed.
        if limit is not None and done >= limit:
            final = Save(f"{self.prefix}_model_final.pth", owner=self.trainer.hook)
            self.trainer.run.save(final, everywhere=True)
