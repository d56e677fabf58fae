"""`LogVariables`: log the numbers of each epoch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.core.checks import matches
from hookloop.core.hook import Hook
from hookloop.errors import HookError
from hookloop.runs.log import OpenLog
from hookloop.runs.run_log import LOGGER

if TYPE_CHECKING:
    from hookloop.core.run import Phase, Run

# A logger of its own, so that printing these lines does not print everything else that is logged.
_log = logging.getLogger(f"{LOGGER}.variables")


class LogVariables(Hook):
    """Log the numbers of each epoch, validation and test, one per line.

    They go to the logger ``hookloop``; if the program has not set up logging, they are printed.

    Args:
        variables: Names or patterns, for example ``["*/loss/mean"]``; everything by default.

    Example:
        >>> LogVariables(["val/*"]).reads
        ('val/*',)
    """

    ranks = "first"
    draws_random_numbers = False

    def __init__(self, variables: Sequence[str] | None = None) -> None:
        if isinstance(variables, str):
            raise HookError(f"LogVariables: variables is a list, write ['{variables}'].")
        self.variables = tuple(variables or ("*/*",))
        # As a reader it must come after the hooks that compute what it logs, which the plan checks.
        self.reads = self.variables
        self._open: OpenLog | None = None

    def before_run(self, run: Run) -> None:
        self._open = OpenLog(logger=_log.name)

    def after_train_epoch(self, run: Run) -> None:
        self._write(run, "train")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write(run, "val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write(run, "test")

    def after_run(self, run: Run) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _write(self, run: Run, phase: Phase) -> None:
        if self._open is None:
            return
        chosen = {
            name: value
            for name, value in run.metrics.stream(phase).items()
            if any(matches(name, wanted) for wanted in self.variables)
        }
        if chosen:
            _log.info("epoch %d, iteration %d", run.progress.epoch, run.progress.iter)
        for name, value in chosen.items():
            _log.info("    %s: %f", name, value)
