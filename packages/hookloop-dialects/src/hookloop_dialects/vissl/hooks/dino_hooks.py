"""`DINOHook`: the teacher of DINO and MSN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.hook_utils import MomentumTeacherInLossHook, check_loss_has

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class DINOHook(QuietHook):
    """After each forward pass, set the teacher's output and temperature in the loss.

    The loss has ``momentum_teacher``, None at first, ``teacher_output``, ``teacher_temp``,
    ``crops_for_teacher``, ``teacher_momentum``, ``teacher_temp_min``, ``teacher_temp_max``,
    ``teacher_temp_warmup_iters`` and ``checkpoint``.
    """

    takes_part_in_training = True

    def on_start(self, task: Task) -> None:
        check_loss_has(
            task,
            "momentum_teacher",
            "crops_for_teacher",
            "teacher_momentum",
            "teacher_temp_min",
            "teacher_temp_max",
            "teacher_temp_warmup_iters",
        )

    @torch.no_grad()
    def on_forward(self, task: Task) -> None:
        loss: Any = task.loss
        if loss.momentum_teacher is None:
            MomentumTeacherInLossHook.build_momentum_network(task, config=task.config)
        inputs = [task.last_batch.sample["input"][index] for index in loss.crops_for_teacher]
        loss.teacher_output = loss.momentum_teacher(inputs)[0][-1]
        loss.teacher_temp = _temperature(loss, task.iteration)
        task.additional_log_data["dino_teacher_temp"] = loss.teacher_temp

    def on_update(self, task: Task) -> None:
        loss: Any = task.loss
        MomentumTeacherInLossHook.update_momentum_network(task, loss.teacher_momentum)


def _temperature(loss: Any, iteration: int) -> float:  # noqa: ANN401 - a loss of DINO
    """Return the teacher's temperature, which grows evenly in the first iterations."""
    low, high = loss.teacher_temp_min, loss.teacher_temp_max
    iterations = loss.teacher_temp_warmup_iters
    if iteration >= iterations:
        return float(high)
    return float(low + (high - low) * iteration / max(1, iterations - 1))
