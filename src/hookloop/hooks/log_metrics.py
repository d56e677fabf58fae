"""`LogMetrics`: the run as text, in its own log file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook, interval_of
from hookloop.core.priority import Priority
from hookloop.every import Every
from hookloop.hooks.show_progress import ShowProgress
from hookloop.hooks.wording import (
    describe,
    numbers,
    peak_memory,
    place,
    remaining,
    short_names,
    without_times,
)
from hookloop.runs.layout import RunDir
from hookloop.runs.log import LOGGER, OpenLog

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger(LOGGER)


class LogMetrics(Hook):
    """Log loss, learning rate, times, remaining time and memory at an interval.

    Everything that hookloop logs during the run goes to ``run.log`` in the run directory, with the
    time: these lines, the results of epochs and evaluations, warnings, and how the run ended.

    Args:
        every: How often in training, in iterations or time; numbers are means since the last time,
            of 100 values at most.
        file: Whether to write ``run.log``.
        console: Whether to print the lines as well, where the program has not set up logging; by
            default only when no `ShowProgress` shows the run.

    Example:
        >>> str(LogMetrics(every="1 min").every)
        '1 min'
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"

    def __init__(
        self, every: Every | int | str = 50, *, file: bool = True, console: bool | None = None
    ) -> None:
        self.every = interval_of(self, every)
        self.file = file
        self.console = console
        self._open: OpenLog | None = None

    def before_run(self, run: Run) -> None:
        if not run.world.is_main:
            return
        shown = any(isinstance(hook, ShowProgress) for hook in run.hooks)
        console = not shown if self.console is None else self.console
        self._open = OpenLog(RunDir(run.dir).log_file if self.file else None, screen=console)

    def before_train(self, run: Run) -> None:
        if self._open is not None:
            parameters = sum(parameter.numel() for parameter in run.model.parameters())
            _log.info("%s  on %s  %d parameters", run.dir, run.device, parameters)
            if run.progress.iter:
                _log.info("going on after iteration %d", run.progress.iter)

    def after_train_iter(self, run: Run) -> None:
        if self._open is not None:
            recent = short_names(run.metrics.since("train", self.name))
            words = (place(run), describe(run, recent), f"eta {remaining(run, recent)}")
            _log.info("%s  memory %s", "  ".join(words), peak_memory(run.device))

    def after_train_epoch(self, run: Run) -> None:
        self._say(run, "train")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._say(run, "val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._say(run, "test")

    def on_exception(self, run: Run, error: BaseException) -> None:
        if self._open is not None:
            _log.error("%s: %s", type(error).__name__, error, exc_info=error)

    def after_run(self, run: Run) -> None:
        if self._open is None:
            return
        outcome = run.outcome
        why = f" ({outcome.reason})" if outcome.reason else ""
        _log.info("%s%s after iteration %d", outcome.status, why, run.progress.iter)
        self._open.close()
        self._open = None

    def _say(self, run: Run, phase: str) -> None:
        if self._open is not None:
            results = numbers(without_times(run.metrics.stream(phase)))
            _log.info(
                "epoch %d  iter %d  %s: %s", run.progress.epoch, run.progress.iter, phase, results
            )
