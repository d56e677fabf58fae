"""`EmptyCache`: release memory that torch keeps cached on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class EmptyCache(Hook):
    """Release the allocator's cache of a CUDA or MPS device, in training, validation and test.

    This helps when another process needs the memory, or when the memory is fragmented. It costs
    time, because the memory has to be allocated again. On a CPU it does nothing.

    Args:
        before_epoch: Whether to release before each pass over a data set.
        after_iter: Whether to release after every iteration.
        after_epoch: Whether to release after each pass over a data set.

    Example:
        >>> EmptyCache(after_iter=True).releases_after_iter
        True
    """

    draws_random_numbers = False

    def __init__(
        self, before_epoch: bool = False, after_iter: bool = False, after_epoch: bool = True
    ) -> None:
        if not (before_epoch or after_iter or after_epoch):
            raise HookError(
                "EmptyCache would do nothing: give before_epoch, after_iter or after_epoch."
            )
        self.releases_before_epoch = before_epoch
        self.releases_after_iter = after_iter
        self.releases_after_epoch = after_epoch
        self.count = 0

    def before_train_epoch(self, run: Run) -> None:
        if self.releases_before_epoch:
            self._release(run)

    def after_train_iter(self, run: Run) -> None:
        if self.releases_after_iter:
            self._release(run)

    def after_train_epoch(self, run: Run) -> None:
        if self.releases_after_epoch:
            self._release(run)

    # The other phases do the same at their points.
    before_val_epoch = before_test_epoch = before_predict_epoch = before_train_epoch
    after_val_iter = after_test_iter = after_predict_iter = after_train_iter
    after_val = after_test = after_predict = after_train_epoch

    def _release(self, run: Run) -> None:
        self.count += 1  # For tests: on a CPU there is nothing else to see.
        if run.device.type == "cuda":
            torch.cuda.empty_cache()
        elif run.device.type == "mps":
            torch.mps.empty_cache()
