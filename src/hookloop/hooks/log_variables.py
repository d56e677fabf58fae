"""`LogVariables`: the epoch's numbers in the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.core.contract import matches
from hookloop.core.hook import Hook

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")


class LogVariables(Hook):
    """Log metrics at the end of every epoch, a line each.

    Args:
        variables: Names or patterns, for example ``["*/loss/mean"]``; everything when not given.

    Example:
        >>> LogVariables(["val/*"]).reads
        ('val/*',)
    """

    def __init__(self, variables: Sequence[str] | None = None) -> None:
        self.variables = tuple(variables or ("*",))
        self.reads = self.variables

    def after_epoch(self, run: Run) -> None:
        for name, value in run.metrics.all_latest().items():
            if any(matches(name, wanted) for wanted in self.variables):
                _log.info("\t%s: %f", name, value)
