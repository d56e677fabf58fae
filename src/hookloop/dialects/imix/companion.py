"""`ImixCompanion`: iMIX's counters and log buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.dialects.companion import Companion
from hookloop.dialects.imix.log_buffer import LogBufferStorage, set_log_buffer
from hookloop.metrics.series import Series

if TYPE_CHECKING:
    from hookloop.core.run import Run


class ImixCompanion(Companion):
    """Tells how far iMIX's counters lag behind ours, and steps the log buffer.

    Args:
        buffer: The log buffer.

    Attributes:
        behind_iter: 1 while the hooks of ``after_train_iter`` act, in which ours has counted on.
        behind_epoch: The same for epochs, until the next begins.
        is_training: Whether a training was begun in this run.
        start_iter: Where it began.
        start_epoch: The same for epochs.
    """

    name = "dialect:imix"

    def __init__(self, buffer: LogBufferStorage) -> None:
        self.buffer = buffer
        self.behind_iter = 0
        self.behind_epoch = 0
        self.is_training = False
        self.start_iter = 0
        self.start_epoch = 0
        self._losses = Series()

    def before_run(self, run: Run) -> None:
        self.is_training = False

    def before_train(self, run: Run) -> None:
        self.is_training = True
        self.start_iter, self.start_epoch = run.progress.iter, run.progress.epoch
        self.buffer.iter = run.progress.iter
        self._losses = run.metrics.series("train/loss")
        set_log_buffer(self.buffer)

    def before_train_epoch(self, run: Run) -> None:
        self._next()
        self.behind_epoch = 0

    def before_train_iter(self, run: Run) -> None:
        self._next()

    def after_train_iter(self, run: Run) -> None:
        self.behind_iter = 1
        losses = self._losses
        if not losses.is_empty:  # iMIX's engine puts the losses itself.
            self.buffer.put_loss(losses.latest)

    def after_train_epoch(self, run: Run) -> None:
        self._next()
        self.behind_epoch = 1

    def after_run(self, run: Run) -> None:
        self._next()

    def _next(self) -> None:
        """Step the buffer after a sweep of ``after_train_iter``, as iMIX's engine does."""
        if self.behind_iter:
            self.behind_iter = 0
            self.buffer.step()
