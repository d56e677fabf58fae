"""`LogVariables`: log the numbers of each epoch."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.engine.checks import matches
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.runs.log import OpenLog
from hookloop.runs.run_log import LOGGER

if TYPE_CHECKING:
    from hookloop.engine.run import Phase, Run

PHASES: tuple[Phase, ...] = ("train", "val")

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
        self._logged: dict[str, int] = {}  # How many values of each name there were.

    def before_run(self, run: Run) -> None:
        self._open = OpenLog(logger=_log.name)
        self._logged = run.metrics.counts(run.metrics.names())

    def after_train_epoch(self, run: Run) -> None:
        self._write(run, "train")

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write(run, "val")

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._write(run, "test")

    def after_epoch_profile(self, run: Run) -> None:
        # Some hooks put numbers of the training only when the whole epoch is over, as those of
        # other systems do.
        for phase in PHASES:
            names = [name for name in run.metrics.names() if name.startswith(f"{phase}/")]
            counts = run.metrics.counts(names)
            late = {name for name in names if counts[name] != self._logged.get(name)}
            if late:
                self._write(run, phase, late)

    def after_run(self, run: Run) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _write(self, run: Run, phase: Phase, only: Collection[str] | None = None) -> None:
        if self._open is None:
            return
        chosen = {
            name: value
            for name, value in run.metrics.stream(phase).items()
            if any(matches(name, wanted) for wanted in self.variables)
            and (only is None or name in only)
        }
        self._logged |= run.metrics.counts(chosen)
        if chosen:
            _log.info("epoch %d, iteration %d", run.progress.epoch, run.progress.iter)
        for name, value in chosen.items():
            _log.info("    %s: %f", name, value)
