"""Modules that initialize their weights once."""

import torch
from torch import nn

from hookloop.dialects.mmengine.model import BaseModule, ModuleList, Sequential


class Inner(BaseModule):
    def __init__(self, init_cfg=None):
        super().__init__(init_cfg)
        self.calls = 0
        self.linear = nn.Linear(1, 1)

    def init_weights(self):
        self.calls += 1
        super().init_weights()


def test_weights_inside_are_initialized_too():
    class Outer(BaseModule):
        def __init__(self):
            super().__init__()
            self.inner, self.plain = Inner(), nn.Linear(1, 1)

    outer = Outer()
    assert not outer.is_init
    outer.init_weights()
    assert outer.is_init
    assert outer.inner.is_init
    outer.init_weights()
    assert outer.inner.calls == 1


def test_containers_hold_modules():
    first, second = Inner(), Inner()
    sequence = Sequential(first, nn.Identity(), init_cfg={"type": "x"})
    assert len(sequence) == 2
    assert sequence.init_cfg == {"type": "x"}
    listed = ModuleList([first, second])
    assert list(listed) == [first, second]
    listed.init_weights()
    assert (first.calls, second.calls) == (1, 1)
    assert len(ModuleList()) == 0


def test_a_sequence_computes_in_order():
    sequence = Sequential(nn.Flatten(), nn.Identity())
    assert sequence(torch.ones(1, 2, 2)).shape == (1, 4)


def test_pretrained_weights_are_loaded(tmp_path):
    source = nn.Linear(1, 1)
    weights = {f"module.linear.{name}": value for name, value in source.state_dict().items()}
    torch.save({"state_dict": weights}, tmp_path / "weights.pth")
    module = Inner({"type": "Pretrained", "checkpoint": str(tmp_path / "weights.pth")})
    module.init_weights()
    assert torch.equal(module.linear.weight, source.weight)


def test_other_initializers_leave_the_weights():
    module = Inner({"type": "Constant", "val": 0})
    before = module.linear.weight.detach().clone()
    module.init_weights()
    assert torch.equal(module.linear.weight, before)
