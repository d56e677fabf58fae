"""`ImixCompanion`: iMIX's counters and log buffer."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from torch import Tensor

from hookloop.dialects import Companion, Series, is_scalar
from hookloop_dialects.imix.log_buffer import LogBufferStorage, set_log_buffer

if TYPE_CHECKING:
    from hookloop import Run


class ImixCompanion(Companion):
    """Track how far iMIX's counters are behind ours, and step the log buffer.

    iMIX increments its counters after the hooks of a stage, we increment ours before them.

    Args:
        buffer: The log buffer.

    Attributes:
        behind_iter: 1 during ``after_train_iter``, and at the end of a training by iteration,
            otherwise 0.
        inner_iter: Index within its epoch of the iteration that began last.
        behind_epoch: 1 from ``after_train_epoch`` to the next epoch, otherwise 0.
        is_training: Whether a training has begun in this run.
        is_starting: Whether its first iteration is still to come.
        start_iter: The first iteration of that training.
        start_epoch: The first epoch of that training.
    """

    name = "dialect:imix"

    def __init__(self, buffer: LogBufferStorage) -> None:
        self.buffer = buffer
        self.behind_iter = 0
        self.behind_epoch = 0
        self.inner_iter = 0
        self.is_training = False
        self.is_starting = False
        self.start_iter = 0
        self.start_epoch = 0
        self._losses = Series()
        self._iter_ended = 0.0

    def before_run(self, run: Run) -> None:
        self.is_training = False

    def before_train(self, run: Run) -> None:
        self.is_training = self.is_starting = True
        self.behind_iter = 0
        self.start_iter, self.start_epoch = run.progress.iter, run.progress.epoch
        # A resumed run continues to count where the checkpoint was written.
        buffer, progress = self.buffer, run.progress
        buffer.start_iter = buffer.iter = progress.iter
        buffer.epoch = progress.epoch
        buffer.single_epoch_iters = progress.epoch_iters or 0
        buffer.by_epoch = progress.max_epochs is not None or progress.max_iters is None
        self._losses = run.metrics.series("train/loss")
        set_log_buffer(self.buffer)

    def before_train_epoch(self, run: Run) -> None:
        self.is_starting = False
        self._step_buffer(run)
        self._iter_ended = perf_counter()
        self.behind_epoch = 0
        self.buffer.epoch = run.progress.epoch
        self.buffer.single_epoch_iters = run.progress.epoch_iters or 0

    def before_train_iter(self, run: Run) -> None:
        self._step_buffer(run)
        self.inner_iter = run.progress.iter_in_epoch
        # iMIX's engine writes it, too: the seconds that the batch was waited for.
        self.buffer.put_later("data_time", perf_counter() - self._iter_ended)

    def after_train_iter(self, run: Run) -> None:
        self.behind_iter = 1
        self._iter_ended = perf_counter()
        losses = self._losses
        # In iMIX the engine writes the losses, not a hook.
        if not losses.is_empty:
            self.buffer.put_later("loss", losses.latest)
        # The common case first: to ask a tensor whether it is a Mapping takes longer.
        if type(run.output) is not Tensor and isinstance(run.output, Mapping):
            for name, value in run.output.items():
                if name not in ("loss", "weight") and is_scalar(value):
                    self.buffer.put_later(name, value)

    def after_train_epoch(self, run: Run) -> None:
        self._step_buffer(run)
        self.behind_epoch = 1

    def after_run(self, run: Run) -> None:
        has_ended_here = self.behind_iter == 1
        self._step_buffer(run)
        # By iteration, iMIX counts with the variable of a for loop, which ends with the last index.
        if has_ended_here and not self.buffer.by_epoch:
            self.behind_iter = 1

    def _step_buffer(self, run: Run) -> None:
        """Step the buffer once after the hooks of ``after_train_iter``, as iMIX's engine does."""
        # At the next event, since this hook acts first and cannot act after the others.
        if self.behind_iter:
            self.behind_iter = 0
            self.buffer.step()
            self.buffer.epoch_inner_iter = run.progress.iter_in_epoch
