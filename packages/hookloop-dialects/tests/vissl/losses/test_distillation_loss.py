"""A student and a teacher."""

import pytest
import torch

from hookloop.errors import ModelError
from hookloop_dialects.vissl.losses.distillation_loss import DistillationLoss


def test_the_loss_mixes_teacher_and_targets():
    scores, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    hard = torch.nn.functional.cross_entropy(scores, targets)
    loss = DistillationLoss(soft_target_alpha=0.0)
    with pytest.raises(ModelError, match="teacher_logits"):
        loss(scores, targets)
    loss.teacher_logits = torch.eye(3)[targets] * 1e4  # A teacher that is sure of the targets.
    assert loss(scores, targets) == pytest.approx(hard.item())
    loss.alpha = 0.5
    assert loss(scores, targets) == pytest.approx(hard.item())
