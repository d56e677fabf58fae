"""MoCo's encoder."""

import pytest
import torch
from tests.tiny import assert_same_bits
from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl.hooks import MoCoHook


class Loss(TeacherLoss):
    teacher = "moco_encoder"


def compare(loss, output):
    assert torch.allclose(loss.key.norm(dim=1), torch.ones(4))
    distance = torch.nn.functional.normalize(output, dim=1) - loss.key
    return distance.square().sum() + output.square().sum()


def test_keys_reach_the_loss_the_encoder_follows_and_both_survive_a_resume(tmp_path):
    def run(where, epochs, **options):
        loss, model = Loss(compare, key=None), Encoder()
        hooks = MoCoHook(0.9), SaveCheckpoint()
        options |= {"loss": loss, "train_data": views("plain"), "val_data": None}
        trainer = train(tmp_path / where, *hooks, model=model, max_epochs=epochs, **options)
        return trainer.run.model, loss

    run("cut", 1)
    model, loss = run("cut", 2, resume=True)
    whole, other = run("whole", 2)
    assert_same_bits(model, whole)
    assert_same_bits(loss.moco_encoder, other.moco_encoder)
    assert not torch.equal(loss.moco_encoder.trunk.weight, model.trunk.weight)


def test_a_loss_without_its_parts_is_rejected_before_the_first_iteration(tmp_path):
    with pytest.raises(
        HookError, match=r"'mo_co_hook' needs a loss with moco_encoder.*FunctionLoss"
    ):
        train(tmp_path, MoCoHook(0.9))
