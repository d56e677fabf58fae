"""`SyncBuffers`: give all ranks the same buffers before validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.parallel.reduce import mean_over_ranks

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class SyncBuffers(Hook):
    """Average buffers, such as batch norm's statistics, over all ranks before a validation.

    It acts after every training epoch, and before a validation within one. Integer buffers are the
    same on all ranks and are not touched. In a single process it does nothing. On many ranks it is
    one of the default hooks, named ``buffers``.

    Example:
        >>> SyncBuffers().name
        'sync_buffers'
    """

    # Before AverageWeights, which puts other buffers into the model for the validation.
    priority = Priority.HIGH
    takes_part_in_training = True  # The averaged buffers are also what training continues with.

    def __init__(self) -> None:
        self._synced_at = -1

    def after_train_epoch(self, run: Run) -> None:
        self._sync(run)

    def before_val(self, run: Run) -> None:
        self._sync(run)

    def _sync(self, run: Run) -> None:
        # Once per iteration: the validation right after an epoch finds the buffers averaged.
        # Logical ranks leave the same buffers on all processes.
        if run.world.size > 1 and not run.world.logical and self._synced_at != run.progress.iter:
            mean_over_ranks(buffer for buffer in run.model.buffers() if buffer.is_floating_point())
            self._synced_at = run.progress.iter
