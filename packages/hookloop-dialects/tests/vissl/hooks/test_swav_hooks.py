"""SwAV's queue and prototypes."""

from types import SimpleNamespace

import pytest
import torch
from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import NormalizePrototypesHook, SwAVUpdateQueueScoresHook


@pytest.mark.parametrize(("name", "calls"), [("swav_loss", 3), ("other_loss", 0)])
def test_scores_are_computed_and_prototypes_normalized_for_swav_alone(tmp_path, name, calls):
    heads, model = [], Encoder()
    criterion = SimpleNamespace(use_queue=True, compute_queue_scores=heads.append)
    loss = TeacherLoss(lambda loss, output: output[1].square().sum(), swav_criterion=criterion)
    config = {"LOSS": {"name": name, "swav_loss": {"normalize_last_layer": True}}}
    hooks = SwAVUpdateQueueScoresHook(), NormalizePrototypesHook()
    parts = {"loss": loss, "train_data": views(), "val_data": None, "setup.config": config}
    train(tmp_path, *hooks, model=model, max_epochs=1, **parts)
    assert heads == [model.heads[0]] * calls
    norms = model.heads[0].prototypes0.weight.norm(dim=1)
    assert torch.allclose(norms, torch.ones(3)) is bool(calls)
