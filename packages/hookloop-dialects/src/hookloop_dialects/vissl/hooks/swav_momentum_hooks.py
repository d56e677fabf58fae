"""The hooks of SwAV with a momentum encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from hookloop_dialects.vissl.classy_vision.generic.distributed_util import (
    init_distributed_data_parallel_model,
)
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.hook_utils import (
    check_loss_has,
    follow,
    new_teacher,
    normalize_prototypes,
    restore_or_copy,
)
from hookloop_dialects.vissl.models.model_helpers import get_no_ddp_model

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class SwAVMomentumHook(QuietHook):
    """After each forward pass, move the encoder and set its scores in the loss.

    The loss has ``momentum_encoder``, None at first, ``num_iteration``, ``momentum_scores``,
    ``momentum_embeddings`` and ``checkpoint``.

    Args:
        momentum: Share of the encoder's own weights.
        momentum_eval_mode_iter_start: Iteration from which the encoder is in evaluation mode.
        crops_for_assign: Which inputs of a batch the encoder gets.
    """

    takes_part_in_training = True

    def __init__(
        self, momentum: float, momentum_eval_mode_iter_start: int, crops_for_assign: Sequence[int]
    ) -> None:
        super().__init__()
        self.momentum = momentum
        self.momentum_eval_mode_iter_start = momentum_eval_mode_iter_start
        self.crops_for_assign = crops_for_assign

    def on_start(self, task: Task) -> None:
        check_loss_has(task, "momentum_encoder", "num_iteration", "checkpoint")

    @torch.no_grad()
    def on_forward(self, task: Task) -> None:
        loss: Any = task.loss
        moves = True
        if loss.momentum_encoder is None:
            made = new_teacher(task)
            loss.momentum_encoder = init_distributed_data_parallel_model(made)
            # In a run that is resumed it moves at once, as it would have without the interruption.
            moves = restore_or_copy(task, loss.momentum_encoder)
        if moves:
            follow(get_no_ddp_model(loss.momentum_encoder), task.base_model, self.momentum)
            _copy_statistics(task.base_model, get_no_ddp_model(loss.momentum_encoder))
        loss.momentum_encoder.train(loss.num_iteration < self.momentum_eval_mode_iter_start)
        inputs = [task.last_batch.sample["input"][index] for index in self.crops_for_assign]
        output = loss.momentum_encoder(inputs)[0]
        loss.momentum_embeddings, loss.momentum_scores = output[0], output[1:]


def _copy_statistics(model: nn.Module, teacher: nn.Module) -> None:
    theirs = dict(model.named_buffers())
    for name, own in teacher.named_buffers():
        if "running_" in name:
            own.copy_(theirs[name])


class SwAVMomentumNormalizePrototypesHook(QuietHook):
    """After each update, give the prototypes of model and encoder the length 1."""

    takes_part_in_training = True

    def on_update(self, task: Task) -> None:
        if not task.config.find("LOSS.swav_momentum_loss.normalize_last_layer"):
            return
        loss, model = _parts(task)
        normalize_prototypes(model.heads[0])
        normalize_prototypes(get_no_ddp_model(loss.momentum_encoder).heads[0])  # type: ignore[index]


def _parts(task: Task) -> tuple[Any, Any]:
    return task.loss, task.base_model
