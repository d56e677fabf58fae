"""The hooks of iMIX that are built from native ones, and two small ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hookloop import Hook
from hookloop import hooks as native
from hookloop.dialects import Catalogued
from hookloop_dialects.imix.engine.hooks.base_hook import HookBase

_log = logging.getLogger("imix")


class AutogradAnomalyDetectHook(HookBase, Catalogued):
    """Find the operation behind a NaN in backward; iMIX documents it and does not have it."""

    dialect = "imix"

    def native_hooks(self) -> Sequence[Hook]:
        """Return the native hook."""
        return [native.DetectAnomaly()]


class AutogradProfilerHook(HookBase, Catalogued):
    """Profile some iterations; iMIX documents it and does not have it.

    Args:
        wait: Iterations before the profile starts.
        active: Iterations to profile.
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
    """Do nothing, as in iMIX; `hookloop.hooks.ScheduleParameter` schedules a momentum."""

    def before_train(self) -> None:
        # iMIX's class is empty and silent about it.
        _log.warning("MomentumSchedulerHook does nothing: use hookloop.hooks.ScheduleParameter.")


class TextLoggerHook(HookBase):
    """Log a text before the training, for experiments with hooks.

    Args:
        text: The text.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    def before_train(self) -> None:
        _log.info(self.text)
