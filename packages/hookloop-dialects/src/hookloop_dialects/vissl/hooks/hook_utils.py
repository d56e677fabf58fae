"""`MomentumTeacherInLossHook`: a teacher in the loss that follows the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from hookloop.errors import HookError
from hookloop_dialects.vissl.models.building import build_model
from hookloop_dialects.vissl.models.model_helpers import get_no_ddp_model

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class MomentumTeacherInLossHook:
    """What hooks with a momentum teacher in ``task.loss.momentum_teacher`` share."""

    @staticmethod
    def build_momentum_network(task: Task, config: Mapping[str, Any]) -> None:
        """Make the teacher: a copy of the model, or as the loss kept it from a checkpoint."""
        loss: Any = task.loss
        loss.momentum_teacher = new_teacher(task, config)
        restore_or_copy(task, loss.momentum_teacher)

    @staticmethod
    @torch.no_grad()
    def update_momentum_network(
        task: Task, init_teacher_momentum: float, with_cosine_schedule: bool = True
    ) -> None:
        """Move the teacher towards the model.

        Args:
            task: The task.
            init_teacher_momentum: Share of the teacher's own weights.
            with_cosine_schedule: Whether that share grows to 1 during the training.
        """
        momentum = init_teacher_momentum
        if with_cosine_schedule:
            done = math.cos(math.pi * task.iteration / max(1, task.max_iteration))
            momentum = 1 - (1 - init_teacher_momentum) * (done + 1) / 2
        task.additional_log_data["teacher_momentum"] = momentum
        loss: Any = task.loss
        follow(get_no_ddp_model(loss.momentum_teacher), task.base_model, momentum)


def check_loss_has(task: Task, *names: str) -> None:
    """Reject a loss that lacks what a hook uses of it, before the first iteration."""
    missing = [name for name in names if not hasattr(task.loss, name)]
    if missing:
        raise HookError(
            f"The hook '{task.hook}' needs a loss with {', '.join(names)}. "
            f"{type(task.loss).__name__} lacks {', '.join(missing)}: give Trainer(loss=...) a "
            "torch.nn.Module that has them."
        )


def new_teacher(task: Task, config: Mapping[str, Any] | None = None) -> nn.Module:
    """Return a model like the run's, on its device, that is not trained."""
    whole: Mapping[str, Any] = task.config if config is None else config
    made = build_model(whole["MODEL"], whole.get("OPTIMIZER"))
    return made.to(task.device).requires_grad_(False)


def restore_or_copy(task: Task, teacher: nn.Module) -> bool:
    """Give a teacher the weights that the loss kept from a checkpoint, or those of the model.

    Return whether they are those of a checkpoint.
    """
    kept = getattr(task.loss, "checkpoint", None)
    if kept is not None:
        task.loss.load_state_dict(kept)
    else:
        get_no_ddp_model(teacher).load_state_dict(task.base_model.state_dict())
    return kept is not None


@torch.no_grad()
def follow(teacher: nn.Module, model: nn.Module, momentum: float) -> None:
    """Move the parameters of a teacher towards those of a model."""
    for own, new in zip(teacher.parameters(), model.parameters(), strict=True):
        own.mul_(momentum).add_(new.detach(), alpha=1 - momentum)


@torch.no_grad()
def normalize_prototypes(head: Any) -> None:  # noqa: ANN401 - a head with prototypes0, prototypes1, ...
    """Give the prototypes of a head the length 1."""
    for number in range(head.nmb_heads):
        weight = getattr(head, f"prototypes{number}").weight
        weight.copy_(nn.functional.normalize(weight, dim=1))
