"""MMEngine's hooks that are one of ours under another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.dialects.adapter import Catalogued, native
from hookloop.dialects.mmengine.hooks.hook import Hook

if TYPE_CHECKING:
    from hookloop.core.hook import Hook as NativeHook


class ParamSchedulerHook(Hook, Catalogued):
    """Step the parameter schedulers: by iteration, by epoch, or on a metric."""

    priority = "LOW"

    def native_hooks(self) -> list[NativeHook]:
        return [native("StepSchedules")()]


class DistSamplerSeedHook(Hook, Catalogued):
    """Tell samplers which epoch begins, so that they shuffle anew."""

    def native_hooks(self) -> list[NativeHook]:
        return [native("SetSamplerEpoch")()]


class SyncBuffersHook(Hook, Catalogued):
    """Average the buffers over all processes after each epoch."""

    def native_hooks(self) -> list[NativeHook]:
        return [native("SyncBuffers")()]


class EmptyCacheHook(Hook, Catalogued):
    """Release the cached memory of a GPU.

    Args:
        before_epoch: Whether before each pass.
        after_epoch: Whether after each pass.
        after_iter: Whether after each iteration.
    """

    def __init__(
        self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False
    ) -> None:
        self._when = {
            "before_epoch": before_epoch,
            "after_epoch": after_epoch,
            "after_iter": after_iter,
        }

    def native_hooks(self) -> list[NativeHook]:
        return [native("EmptyCache")(**self._when)] if any(self._when.values()) else []
