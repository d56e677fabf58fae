"""iMIX's hooks that native ones stand for, and its two small ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hookloop import hooks as native
from hookloop.core.hook import Hook
from hookloop.dialects.adapter import Catalogued
from hookloop.dialects.imix.engine.hooks.base_hook import HookBase

_log = logging.getLogger("imix")


class AutogradAnomalyDetectHook(HookBase, Catalogued):
    """Find the operation behind a NaN in backward; in iMIX it is documented and not there."""

    dialect = "imix"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the finding hook."""
        return [native.DetectAnomaly()]


class AutogradProfilerHook(HookBase, Catalogued):
    """Profile some iterations; in iMIX it is documented and not there.

    Args:
        wait: Iterations that are left alone before.
        active: Iterations that are profiled.
    """

    dialect = "imix"

    def __init__(self, wait: int = 1, active: int = 3) -> None:
        super().__init__()
        self.wait = wait
        self.active = active

    def native_hooks(self) -> Sequence[Hook]:
        """Return the profiling hook."""
        return [native.ProfileOperators(wait=self.wait, active=self.active)]


class MomentumSchedulerHook(HookBase):
    """Nothing, in iMIX too; `hookloop.hooks.ScheduleParameter` schedules a momentum."""

    def before_train(self) -> None:
        _log.warning("MomentumSchedulerHook does nothing: use hookloop.hooks.ScheduleParameter.")


class TextLoggerHook(HookBase):
    """Log a text before the training, to try hooks out.

    Args:
        text: The text.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    def before_train(self) -> None:
        _log.info(self.text)
