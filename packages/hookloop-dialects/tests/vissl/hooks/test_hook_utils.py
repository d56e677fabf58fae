"""A teacher in the loss that follows the model."""

import math

import pytest
import torch
from tests.tiny import make_trainer
from tests.vissl.learners import Encoder, TeacherLoss

from hookloop_dialects.vissl import Task
from hookloop_dialects.vissl.hooks.hook_utils import (
    MomentumTeacherInLossHook,
    normalize_prototypes,
)


def make_task(**limits):
    loss = TeacherLoss(None)
    task = Task(make_trainer(model=Encoder(), loss=loss, **limits).run)
    MomentumTeacherInLossHook.build_momentum_network(task, task.config)
    return task, loss


def test_a_teacher_begins_as_a_copy_and_its_momentum_grows():
    task, loss = make_task(max_iters=4)
    assert torch.equal(loss.momentum_teacher.trunk.weight, task.model.trunk.weight)
    assert not loss.momentum_teacher.trunk.weight.requires_grad
    before = loss.momentum_teacher.trunk.weight.clone()
    with torch.no_grad():
        task.model.trunk.weight.add_(1.0)
    task.run.progress.iter = 1
    MomentumTeacherInLossHook.update_momentum_network(task, 0.6)
    momentum = 1 - 0.4 * (math.cos(math.pi / 4) + 1) / 2
    expected = before + (1 - momentum)
    assert torch.allclose(loss.momentum_teacher.trunk.weight, expected, atol=1e-6)
    assert task.additional_log_data["teacher_momentum"] == pytest.approx(momentum)
    MomentumTeacherInLossHook.update_momentum_network(task, 0.5, with_cosine_schedule=False)
    assert task.additional_log_data["teacher_momentum"] == 0.5


def test_prototypes_get_the_length_one():
    model = Encoder()
    normalize_prototypes(model.heads[0])
    assert torch.allclose(model.heads[0].prototypes0.weight.norm(dim=1), torch.ones(3))
