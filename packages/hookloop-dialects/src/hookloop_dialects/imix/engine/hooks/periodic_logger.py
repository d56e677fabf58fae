"""`PeriodicLogger`: call loggers at a fixed interval."""

from __future__ import annotations

from collections.abc import Sequence

from hookloop_dialects.imix.engine.hooks.base_hook import HookBase
from hookloop_dialects.imix.engine.hooks.log_writers import (
    PERIOD,
    CommonMetricLoggerHook,
    LogBufferWriter,
    is_due,
    period_of,
)


class PeriodicLogger(HookBase):
    """Let loggers write, counted within the epoch, or by iteration and at the last one.

    Args:
        loggers: The loggers; by default the one for the terminal.
        log_config_period: Iterations between two writes, unless the config has
            ``log_config.period``.
    """

    def __init__(
        self, loggers: Sequence[LogBufferWriter] | None = None, log_config_period: int = PERIOD
    ) -> None:
        super().__init__()
        self._loggers = list(loggers) if loggers is not None else [CommonMetricLoggerHook()]
        self._period = log_config_period

    def before_train(self) -> None:
        # Not in the constructor, which does not know the config.
        self._period = period_of(self.trainer, self._period)

    def after_train_iter(self) -> None:
        if is_due(self.trainer, self._period):
            for logger in self._loggers:
                logger.write()

    def after_train_epoch(self) -> None:
        for logger in self._loggers:
            logger.end_epoch(self._period)

    def after_train(self) -> None:
        for logger in self._loggers:
            logger.close()
