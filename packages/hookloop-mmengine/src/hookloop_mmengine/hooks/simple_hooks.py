"""MMEngine's hooks that are native hooks under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from hookloop import hooks as native
from hookloop.dialects import Catalogued
from hookloop_mmengine.hooks.hook import DATA_BATCH, Hook
from hookloop_mmengine.hooks.replaceable import Replaceable

if TYPE_CHECKING:
    from hookloop import Hook as NativeHook
    from hookloop_mmengine.facade import RunnerFacade
    from hookloop_mmengine.optim import _ParamScheduler


class ParamSchedulerHook(Hook, Replaceable):
    """Step the parameter schedulers: by iteration, by epoch, or on a metric."""

    priority = "LOW"
    own = ("after_train_iter", "after_train_epoch", "after_val_epoch")
    owns = ("schedules",)
    takes_part_in_training = True

    def after_train_iter(
        self,
        runner: RunnerFacade,
        batch_idx: int,
        data_batch: DATA_BATCH = None,
        outputs: dict[str, object] | None = None,
    ) -> None:
        for scheduler in _schedulers(runner):
            if not scheduler.by_epoch:
                scheduler.step()

    def after_train_epoch(self, runner: RunnerFacade) -> None:
        for scheduler in _schedulers(runner):
            # A scheduler on a metric steps once per validation; stepping here too would make its
            # window end after half of the training.
            if scheduler.by_epoch and not scheduler.need_val_args:
                scheduler.step()

    def after_val_epoch(
        self, runner: RunnerFacade, metrics: Mapping[str, float] | None = None
    ) -> None:
        for scheduler in _schedulers(runner):
            if metrics is not None and scheduler.by_epoch and scheduler.need_val_args:
                scheduler.step(metrics)  # type: ignore[call-arg]

    def native_hooks(self) -> list[NativeHook]:
        return [native.StepSchedules()]


class DistSamplerSeedHook(Hook, Catalogued):
    """Set the epoch of samplers, so that each epoch has another order."""

    def native_hooks(self) -> list[NativeHook]:
        return [native.SetSamplerEpoch()]


class SyncBuffersHook(Hook, Catalogued):
    """Average the buffers over all processes after each epoch."""

    def native_hooks(self) -> list[NativeHook]:
        return [native.SyncBuffers()]


class EmptyCacheHook(Hook, Catalogued):
    """Release the cached memory of a GPU.

    Args:
        before_epoch: Whether to do so before each epoch of any mode.
        after_epoch: Whether to do so after each epoch of any mode.
        after_iter: Whether to do so after each iteration of any mode.
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
        # With nothing to do there is no hook, so that no mount point is fired for it.
        return [native.EmptyCache(**self._when)] if any(self._when.values()) else []


def _schedulers(runner: RunnerFacade) -> list[_ParamScheduler]:
    found = runner.param_schedulers
    if isinstance(found, Mapping):
        return [scheduler for part in found.values() for scheduler in part]
    return cast("list[_ParamScheduler]", found)
