"""Losses by their names in configs."""

import pytest
import torch

from hookloop.errors import ModelError
from hookloop_dialects.vissl.classy_vision.losses import classy_loss


class Scaled(classy_loss.ClassyLoss):
    def __init__(self, scale):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, output, target):
        return self.scale * (output - target).square().mean()


def test_losses_are_registered_and_built(monkeypatch):
    monkeypatch.setattr(classy_loss, "LOSS_REGISTRY", {})
    classy_loss.register_loss("scaled")(Scaled)
    loss = classy_loss.build_loss({"name": "scaled", "scale": 2.0})
    assert loss(torch.ones(1), torch.zeros(1)) == 2 and not loss.has_learned_parameters()
    other = Scaled(3.0)
    other.set_classy_state(loss.get_classy_state())
    assert other.scale == 2
    assert isinstance(classy_loss.build_loss({"name": "MSELoss"}), torch.nn.MSELoss)
    with pytest.raises(ModelError, match="No loss is registered as 'scaledd'.*'scaled'"):
        classy_loss.build_loss({"name": "scaledd"})
    with pytest.raises(ValueError, match="already"):
        classy_loss.register_loss("scaled")(torch.nn.MSELoss)
