"""`ImixCompanion`: iMIX's counters and log buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.dialects.companion import Companion
from hookloop.dialects.imix.log_buffer import LogBufferStorage, set_log_buffer
from hookloop.metrics.series import Series

if TYPE_CHECKING:
    from hookloop.core.run import Run


class ImixCompanion(Companion):
    """Track how far iMIX's counters are behind ours, and step the log buffer.

    iMIX increments its counters after the hooks of a stage, we increment ours before them.

    Args:
        buffer: The log buffer.

    Attributes:
        behind_iter: 1 during ``after_train_iter``, otherwise 0.
        behind_epoch: 1 from ``after_train_epoch`` to the next epoch, otherwise 0.
        is_training: Whether a training has begun in this run.
        start_iter: The first iteration of that training.
        start_epoch: The first epoch of that training.
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
        # A resumed run continues to count where the checkpoint was written.
        self.buffer.iter = run.progress.iter
        self._losses = run.metrics.series("train/loss")
        set_log_buffer(self.buffer)

    def before_train_epoch(self, run: Run) -> None:
        self._step_buffer()
        self.behind_epoch = 0

    def before_train_iter(self, run: Run) -> None:
        self._step_buffer()

    def after_train_iter(self, run: Run) -> None:
        self.behind_iter = 1
        losses = self._losses
        # In iMIX the engine writes the losses, not a hook.
        if not losses.is_empty:
            self.buffer.put_loss(losses.latest)

    def after_train_epoch(self, run: Run) -> None:
        self._step_buffer()
        self.behind_epoch = 1

    def after_run(self, run: Run) -> None:
        self._step_buffer()

    def _step_buffer(self) -> None:
        """Step the buffer once after the hooks of ``after_train_iter``, as iMIX's engine does."""
        # At the next event, since this hook acts first and cannot act after the others.
        if self.behind_iter:
            self.behind_iter = 0
            self.buffer.step()
