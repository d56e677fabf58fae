"""`MoCoHook`: the momentum encoder of MoCo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch import Tensor

from hookloop_dialects.vissl.classy_vision.generic.distributed_util import (
    broadcast,
    gather_from_all,
    get_rank,
    is_distributed_training_run,
)
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.hooks.hook_utils import (
    check_loss_has,
    follow,
    new_teacher,
    restore_or_copy,
)

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class MoCoHook(QuietHook):
    """After each forward pass, move the encoder and set the keys of the batch in the loss.

    The loss has ``moco_encoder``, None at first, ``key`` and ``checkpoint``. The batch has
    ``data_momentum``, whose first entry is the input of the encoder.

    Args:
        momentum: Share of the encoder's own weights.
        shuffle_batch: Whether the samples are exchanged between processes, because batch norm
            would give away which belong together.
    """

    takes_part_in_training = True

    def __init__(self, momentum: float, shuffle_batch: bool = True) -> None:
        super().__init__()
        self.momentum = momentum
        self.shuffle_batch = shuffle_batch

    def on_start(self, task: Task) -> None:
        check_loss_has(task, "moco_encoder", "checkpoint")

    @torch.no_grad()
    def on_forward(self, task: Task) -> None:
        loss: Any = task.loss
        moves = True
        if loss.moco_encoder is None:
            loss.moco_encoder = new_teacher(task)
            # In a run that is resumed it moves at once, as it would have without the interruption.
            moves = restore_or_copy(task, loss.moco_encoder)
        if moves:
            follow(loss.moco_encoder, task.base_model, self.momentum)
        inputs = task.last_batch.sample["data_momentum"][0]
        if self.shuffle_batch and is_distributed_training_run():
            inputs, order = _shuffled(inputs)
            keys = _own_part(gather_from_all(_keys(loss, inputs)), torch.argsort(order))
        else:
            keys = _keys(loss, inputs)
        loss.key = keys


def _keys(loss: Any, inputs: Tensor) -> Tensor:  # noqa: ANN401 - a loss with an encoder
    keys: Tensor = loss.moco_encoder(inputs)[0]
    return torch.nn.functional.normalize(keys, dim=1)


def _shuffled(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return this process's part of the shuffled samples of all, and their order."""
    everything = gather_from_all(inputs)
    order = broadcast(torch.randperm(len(everything), device=inputs.device))
    return _own_part(everything, order), order


def _own_part(values: Tensor, order: Tensor) -> Tensor:
    count = torch.distributed.get_world_size()
    return values[order.view(count, -1)[get_rank()]]
