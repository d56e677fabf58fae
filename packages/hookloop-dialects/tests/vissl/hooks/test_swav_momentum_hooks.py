"""SwAV with a momentum encoder."""

import torch
from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import SwAVMomentumHook, SwAVMomentumNormalizePrototypesHook


class Loss(TeacherLoss):
    teacher = "momentum_encoder"


def test_scores_reach_the_loss_and_the_encoder_changes_its_mode(tmp_path):
    modes = []

    def compare(loss, output):
        loss.num_iteration += 1
        modes.append(loss.momentum_encoder.training)
        (scores,) = loss.momentum_scores
        assert scores.shape == (4, 3) and loss.momentum_embeddings.shape == (4, 8)
        return (output[1][:4] - scores).square().sum() + output[0].square().sum()

    loss, model = Loss(compare, num_iteration=0), Encoder()
    settings = {"swav_momentum_loss": {"normalize_last_layer": True}}
    config = {"LOSS": {"name": "swav_momentum_loss", **settings}}
    hooks = SwAVMomentumHook(0.9, 2, [0]), SwAVMomentumNormalizePrototypesHook()
    parts = {"loss": loss, "train_data": views(), "val_data": None, "setup.config": config}
    train(tmp_path, *hooks, model=model, max_epochs=1, **parts)
    assert modes == [True, True, False]
    for one in (model, loss.momentum_encoder):
        assert torch.allclose(one.heads[0].prototypes0.weight.norm(dim=1), torch.ones(3))
