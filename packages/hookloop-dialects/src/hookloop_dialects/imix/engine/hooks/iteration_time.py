"""`IterationTimerHook`: measure iterations and epochs."""

from __future__ import annotations

import logging
from datetime import timedelta
from time import perf_counter

from hookloop_dialects.imix.engine.hooks.base_hook import HookBase

_log = logging.getLogger("imix")


class IterationTimerHook(HookBase):
    """Put ``iter_time`` and ``epoch_time`` into the log buffer, and log a summary at the end.

    Args:
        warmup_iter: Iterations at the start that are not counted.
    """

    def __init__(self, warmup_iter: int = 0) -> None:
        super().__init__()
        self._warmup_iter = warmup_iter
        self._began = self._iter_began = self._epoch_began = perf_counter()
        self._total = 0.0

    def before_train(self) -> None:
        self._began = perf_counter()

    def before_train_epoch(self) -> None:
        self._epoch_began = perf_counter()

    def before_train_iter(self) -> None:
        self._iter_began = perf_counter()

    def after_train_iter(self) -> None:
        # Relative to this training: a resumed run warms up again.
        if self.trainer.iter - self.trainer.start_iter >= self._warmup_iter:
            seconds = perf_counter() - self._iter_began
            self._total += seconds
            self.trainer.log_buffer.put_scalar("iter_time", seconds)

    def after_train_epoch(self) -> None:
        seconds = perf_counter() - self._epoch_began
        self.trainer.log_buffer.put_scalar("epoch_time", seconds, is_epoch=True)

    def after_train(self) -> None:
        counted = self.trainer.iter - self.trainer.start_iter - self._warmup_iter
        # after_train comes after a failure too, perhaps before any iteration was counted.
        if counted > 0:
            whole = perf_counter() - self._began
            _log.info(
                "%d iterations in %s (%.4f s / it); the hooks took %s.",
                counted,
                timedelta(seconds=int(self._total)),
                self._total / counted,
                timedelta(seconds=int(max(0.0, whole - self._total))),
            )
