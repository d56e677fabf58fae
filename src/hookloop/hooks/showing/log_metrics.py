"""`LogMetrics`: the run as lines of text in its log file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.every import Every, limit
from hookloop.hooks._intervals import interval_of
from hookloop.hooks.showing._wording import (
    drop_train_prefix,
    format_numbers,
    format_peak_memory,
    format_training,
    is_training_metric,
    read_new,
    read_new_of_hooks,
    read_unshown,
    without_times,
)
from hookloop.hooks.showing.show_progress import ShowProgress
from hookloop.runs.log import OpenLog
from hookloop.runs.run_log import ELSEWHERE, LOGGER

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger(LOGGER)


class LogMetrics(Hook):
    """Log loss, learning rate, times, remaining time and memory at an interval.

    The lines, and the results of epochs and evaluations, are added to the run's ``run.log``, which
    always has the warnings and the end of the run.

    Args:
        every: Interval in training, in iterations or time; numbers are means since the last line,
            of 100 values at most.
        file: Whether to add the lines to ``run.log``.
        console: Whether to print the lines too, if the program has not set up logging; by default
            only if no `ShowProgress` shows the run.

    Example:
        >>> str(LogMetrics(every="1 min").every)
        '1 min'
    """

    ranks = "first"
    priority = Priority.BELOW_NORMAL  # After the hooks that put numbers at the same point.
    on_error = "disable"
    draws_random_numbers = False

    def __init__(
        self, every: Every | int | str = 50, *, file: bool = True, console: bool | None = None
    ) -> None:
        self.every = interval_of(self, every)
        self.file = file
        self.console = console
        self._open: OpenLog | None = None

    def before_run(self, run: Run) -> None:
        shown = any(isinstance(hook, ShowProgress) for hook in run.hooks)
        console = not shown if self.console is None else self.console
        self._open = OpenLog(screen=console)

    def before_train(self, run: Run) -> None:
        if self._open is not None:
            parameters = sum(parameter.numel() for parameter in run.model.parameters())
            self._log("%s  on %s  %d parameters", run.dir, run.device, parameters)
            if run.progress.iter:
                self._log("continuing after iteration %d", run.progress.iter)

    def after_train_iter(self, run: Run) -> None:
        if self._open is not None:
            recent = drop_train_prefix(read_new(run, self.name))
            line = format_training(run, recent)
            self._log("%s  memory %s", line, format_peak_memory(run.device))

    def after_train_epoch(self, run: Run) -> None:
        self._log_phase(run, "train")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._log_phase(run, "val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._log_phase(run, "test")

    @limit("1 epoch")
    def after_epoch_profile(self, run: Run) -> None:
        self._log_rest(run)

    def on_exception(self, run: Run, error: BaseException) -> None:
        if self._open is not None:
            # Not to the file: the run itself writes the traceback there.
            _log.error("%s: %s", type(error).__name__, error, exc_info=error, extra=ELSEWHERE)

    def after_run(self, run: Run) -> None:
        if self._open is None:
            return
        self._log_rest(run)
        # Not to the file: the run itself writes this line there.
        _log.info("%s after iteration %d", run.outcome, run.progress.iter, extra=ELSEWHERE)
        self._open.close()
        self._open = None

    def _log_phase(self, run: Run, phase: str) -> None:
        if self._open is not None:
            skip = run.metrics.has_epoch_mean if phase == "train" else is_training_metric
            shown = run.metrics.stream(phase).short() | read_new_of_hooks(run, self.name, skip)
            numbers = format_numbers(without_times(shown)) or "no metrics"
            self._log_at(run, f"{phase}: {numbers}")

    def _log_rest(self, run: Run) -> None:
        """Log values that hooks put after their line was written."""
        if self._open is not None and (rest := read_unshown(run, self.name)):
            self._log_at(run, format_numbers(rest))

    def _log_at(self, run: Run, words: str) -> None:
        self._log("epoch %d  iter %d  %s", run.progress.epoch, run.progress.iter, words)

    def _log(self, message: str, *values: object) -> None:
        _log.info(message, *values, extra=None if self.file else ELSEWHERE)
