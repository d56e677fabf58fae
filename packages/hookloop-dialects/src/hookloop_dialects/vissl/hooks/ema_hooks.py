"""`EmaHook`: keep an average of the weights in ``task.ema_model``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.log_hooks import save_meters

if TYPE_CHECKING:
    from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter
    from hookloop_dialects.vissl.ema_model import ModelEmaV2
    from hookloop_dialects.vissl.task import Task


class EmaHook(QuietHook):
    """Keep an exponential moving average of the model in ``task.ema_model``.

    Args:
        enable_ema_meters: Whether to measure the average with the config's meters as well.
        update_iter: Iterations between two updates.
        warmup: Share of the training in which the average is a copy of the weights.
        decay: Share of the old average in an update; None for the config's, which is 0.9999.
    """

    takes_part_in_training = True

    def __init__(
        self,
        enable_ema_meters: bool = False,
        update_iter: int = 1,
        warmup: float = 0.05,
        decay: float | None = None,
    ) -> None:
        super().__init__()
        self.enable_ema_meters = enable_ema_meters
        self.update_iter = update_iter
        self.warmup = warmup
        self.decay = decay

    def on_start(self, task: Task) -> None:
        average = _average(task)  # Made before the first update changes the weights.
        average.decay = average.decay if self.decay is None else self.decay
        if self.enable_ema_meters:
            task.ema_meters = cast("list[object]", task._build_meters())

    def on_phase_start(self, task: Task) -> None:
        for meter in _meters(task):
            meter.reset()

    def on_update(self, task: Task) -> None:
        if task.iteration % self.update_iter:
            return
        if task.where < self.warmup:
            _average(task).set(task.base_model)
        else:
            _average(task).update(task.base_model)

    @torch.no_grad()
    def on_loss_and_meter(self, task: Task) -> None:
        meters = _meters(task)
        if not meters:
            return
        average, sample = _average(task), task.last_batch.sample
        output = average.module(sample["input"].to(average.device))
        for meter in meters:
            meter.update(_on_cpu(output), sample["target"].cpu())

    def on_phase_end(self, task: Task) -> None:
        for meter in _meters(task):
            meter.sync_state()
        if _meters(task) and task.run.world.is_main:
            save_meters(task, task.train_phase_idx, _meters(task), "ema")


def _average(task: Task) -> ModelEmaV2:
    return cast("ModelEmaV2", task.ema_model)


def _meters(task: Task) -> list[ClassyMeter]:
    return cast("list[ClassyMeter]", task.ema_meters)


def _on_cpu(output: object) -> object:
    if isinstance(output, list | tuple):
        return [_on_cpu(part) for part in output]
    return cast("torch.Tensor", output).cpu()
