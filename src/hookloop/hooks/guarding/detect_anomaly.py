"""`DetectAnomaly`: find the operation whose gradient is NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hookloop.engine.hook import Hook
from hookloop.errors import HookError

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class DetectAnomaly(Hook):
    """Switch on autograd's anomaly detection for a range of iterations.

    A backward pass that produces NaN then fails and shows the line of the forward pass that it
    comes from. Such an iteration takes several times as long, hence the range.

    Args:
        begin: Completed iterations after which to switch it on.
        end: Completed iterations after which to switch it off; None for never.
        check_nan: Whether to look for NaN, in addition to explaining backward passes that fail.

    Example:
        >>> DetectAnomaly(begin=100, end=110).end
        110
    """

    draws_random_numbers = False

    def __init__(self, begin: int = 0, end: int | None = None, *, check_nan: bool = True) -> None:
        if begin < 0 or (end is not None and end <= begin):
            raise HookError(
                f"DetectAnomaly: begin={begin}, end={end} is not a range of iterations."
            )
        self.begin = begin
        self.end = end
        self.check_nan = check_nan
        self._before: tuple[bool, bool] | None = None

    def before_train_iter(self, run: Run) -> None:
        if self._before is None and run.progress.iter >= self.begin and not self._is_over(run):
            # The setting is global to the process, so the user's own is kept for the end.
            self._before = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
            torch.autograd.set_detect_anomaly(True, self.check_nan)

    def after_train_iter(self, run: Run) -> None:
        if self._is_over(run):
            self._restore()

    def after_run(self, run: Run) -> None:
        self._restore()  # Also after a failure, which is what the detection is for.

    def _is_over(self, run: Run) -> bool:
        return self.end is not None and run.progress.iter >= self.end

    def _restore(self) -> None:
        if self._before is not None:
            torch.autograd.set_detect_anomaly(*self._before)
            self._before = None
