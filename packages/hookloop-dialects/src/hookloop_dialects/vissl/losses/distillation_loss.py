"""`DistillationLoss`: compare a student's scores with those of a teacher; and losses like it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from hookloop.errors import ModelError
from hookloop_dialects.vissl.classy_vision.losses.classy_loss import ClassyLoss


class DistillationLoss(ClassyLoss):
    """A mix of the loss against the targets and against the teacher's scores.

    Args:
        soft_target_alpha: Share of the teacher.
        temperature: What both scores are divided by.

    Attributes:
        teacher_logits: The teacher's scores of the batch, which the hook sets.
    """

    def __init__(self, soft_target_alpha: float = 0.9, temperature: float = 1.0) -> None:
        super().__init__()
        self.alpha = soft_target_alpha
        self.temperature = temperature
        self.teacher_logits: Tensor | None = None

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the loss of a batch."""
        if self.teacher_logits is None:
            raise ModelError("DistillationLoss: no hook has set teacher_logits. Add one.")
        soft = torch.softmax(self.teacher_logits / self.temperature, 1)
        student = torch.log_softmax(output / self.temperature, 1)
        from_teacher = -(soft * student).sum(1).mean() * self.temperature**2
        hard = functional.cross_entropy(output, target)
        return self.alpha * from_teacher + (1 - self.alpha) * hard


class DINODistillationLoss(ClassyLoss):
    """The base of your own loss with a teacher of DINO: `DistillationHook` knows it by this."""


class IBOTDistillationLoss(ClassyLoss):
    """The base of your own loss with a teacher of iBOT: `DistillationHook` knows it by this."""


class MSNDistillationLoss(ClassyLoss):
    """The base of your own loss with a teacher of MSN: `DistillationHook` knows it by this."""


class SwAVDistillationLoss(ClassyLoss):
    """The base of your own loss with a teacher of SwAV: `DistillationHook` knows it by this."""
