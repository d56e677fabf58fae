"""`IBOTHook`: the teacher of iBOT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.hook_utils import MomentumTeacherInLossHook, check_loss_has

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class IBOTHook(QuietHook):
    """After each forward pass, set the teacher's output and the epoch in the loss.

    The loss has ``momentum_teacher``, None at first, ``teacher_output``, ``teacher_momentum``,
    ``set_current_epoch`` and ``checkpoint``. The input of a batch has ``global_views``.
    """

    takes_part_in_training = True

    def on_start(self, task: Task) -> None:
        check_loss_has(task, "momentum_teacher", "teacher_momentum", "set_current_epoch")

    @torch.no_grad()
    def on_forward(self, task: Task) -> None:
        loss: Any = task.loss
        if loss.momentum_teacher is None:
            MomentumTeacherInLossHook.build_momentum_network(task, config=task.config)
        views = task.last_batch.sample["input"]["global_views"]
        loss.teacher_output = loss.momentum_teacher({"global_views": views})[0]
        loss.set_current_epoch(task.train_phase_idx)

    def on_update(self, task: Task) -> None:
        loss: Any = task.loss
        MomentumTeacherInLossHook.update_momentum_network(task, loss.teacher_momentum)
