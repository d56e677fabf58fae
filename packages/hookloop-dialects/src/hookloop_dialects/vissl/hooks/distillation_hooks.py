"""`DistillationHook`: a teacher whose outputs the loss gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from hookloop.errors import HookError
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook
from hookloop_dialects.vissl.losses.dino_distillation_loss import DINODistillationLoss
from hookloop_dialects.vissl.losses.distillation_loss import DistillationLoss
from hookloop_dialects.vissl.losses.ibot_distillation_loss import IBOTDistillationLoss
from hookloop_dialects.vissl.losses.msn_distillation_loss import MSNDistillationLoss
from hookloop_dialects.vissl.losses.swav_distillation_loss import SwAVDistillationLoss
from hookloop_dialects.vissl.models.building import build_model
from hookloop_dialects.vissl.utils.checkpoint import CheckpointLoader

if TYPE_CHECKING:
    from hookloop_dialects.vissl.task import Task


class DistillationHook(QuietHook):
    """After each forward pass, set the output of a frozen teacher in the loss.

    Args:
        distillation_config: ``TEACHER_MODEL``, the config of the teacher with the file of its
            weights in ``WEIGHTS_INIT.PARAMS_FILE``, and ``eager_teacher_init``.
    """

    takes_part_in_training = True

    def __init__(self, distillation_config: Any) -> None:  # noqa: ANN401 - an AttrDict
        super().__init__()
        self.distillation_config = distillation_config
        self.teacher_config = distillation_config["TEACHER_MODEL"]
        self.teacher: nn.Module | None = None

    def on_start(self, task: Task) -> None:
        if self.distillation_config["eager_teacher_init"]:
            self._make(task)

    def on_phase_start(self, task: Task) -> None:
        self._make(task)

    def _make(self, task: Task) -> None:
        if self.teacher is not None:
            return
        file = self.teacher_config["WEIGHTS_INIT"]["PARAMS_FILE"]
        if not file:
            raise HookError("DistillationHook: WEIGHTS_INIT.PARAMS_FILE of the teacher is empty.")
        self.teacher = build_model(self.teacher_config, task.config["OPTIMIZER"]).to(task.device)
        weights = CheckpointLoader.load_and_broadcast_init_weights(file, "cpu")
        own = getattr(self.teacher, "init_model_from_weights_params_file", None)
        if callable(own):
            own(config={"MODEL": self.teacher_config}, checkpoint=weights, strict=True)
        else:
            self.teacher.load_state_dict(_weights_in(weights))
        self.teacher.requires_grad_(False).eval()

    @torch.no_grad()
    def on_forward(self, task: Task) -> None:
        loss: Any = task.loss
        inputs = task.last_batch.sample["input"]
        teacher = cast("nn.Module", self.teacher)
        if isinstance(loss, DistillationLoss):
            scores = teacher(inputs)
            scores = scores[0] if isinstance(scores, list | tuple) else scores
            loss.teacher_logits = scores[-1] if isinstance(scores, list) else scores
        elif isinstance(loss, SwAVDistillationLoss):
            outputs = teacher(inputs[:2] if loss.use_two_crops_for_teacher else inputs[:1])[0]
            loss.teacher_prototypes_scores = outputs[-1] if len(outputs) == 2 else outputs[0]
            loss.teacher_prototypes = teacher.heads[0].prototypes0.weight.data  # type: ignore[index,union-attr]
        elif isinstance(loss, DINODistillationLoss):
            loss.teacher_scores = teacher(inputs[: loss.teacher_num_crops])[0][0]
        elif isinstance(loss, MSNDistillationLoss):
            loss.teacher_probs = teacher(inputs[: loss.teacher_num_crops])[0]
        elif isinstance(loss, IBOTDistillationLoss):
            loss.teacher_scores = teacher({"global_views": inputs["global_views"]})[0]
        else:
            raise HookError(
                f"DistillationHook: the loss is {type(loss).__name__}. Derive it from one of the "
                "losses in vissl.losses, such as DistillationLoss."
            )

    @torch.no_grad()
    def on_update(self, task: Task) -> None:
        loss: Any = task.loss
        if isinstance(loss, IBOTDistillationLoss) and loss.use_teacher_prototypes:
            student, teacher = cast("Any", task.base_model), cast("Any", self.teacher)
            for name in ("prototypes0", "prototypes1"):
                getattr(student.heads[0], name).copy_(getattr(teacher.heads[0], name))


def _weights_in(content: dict[str, Any]) -> dict[str, Any]:
    """Return the weights in a checkpoint: of VISSL, of this engine, or of nothing else."""
    state = content.get("classy_state_dict", {}).get("base_model", {}).get("model", {})
    return cast("dict[str, Any]", state.get("trunk") or content.get("model") or content)
