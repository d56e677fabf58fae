"""DINO's teacher."""

import pytest
import torch
from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import DINOHook


def test_output_and_temperature_of_the_teacher_reach_the_loss(tmp_path):
    temperatures = []

    def compare(loss, output):
        temperatures.append(loss.teacher_temp)
        assert loss.teacher_output.shape == (4, 3)
        return (output[1][:4] - loss.teacher_output).square().sum() + output[0].square().sum()

    loss, model = TeacherLoss(compare, crops_for_teacher=[0], teacher_momentum=0.9), Encoder()
    loss.teacher_temp_min, loss.teacher_temp_max, loss.teacher_temp_warmup_iters = 0.1, 0.2, 3
    parts = {"loss": loss, "train_data": views(), "val_data": None}
    train(tmp_path, DINOHook(), model=model, max_epochs=2, **parts)
    assert temperatures == pytest.approx([0.1, 0.15, 0.2, 0.2, 0.2, 0.2])
    assert not torch.equal(loss.momentum_teacher.trunk.weight, model.trunk.weight)
