"""Modules that initialize their weights once."""

import pytest
import torch
from torch import nn

from hookloop.errors import HookloopError
from hookloop_mmengine.model import BaseModule, ModuleDict, ModuleList, Sequential


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


def test_a_config_of_weights_is_left_to_the_graft():
    config = {"type": "Constant", "val": 1}
    module = Inner(config)
    config["val"] = 2
    with pytest.raises(HookloopError, match="Inner has init_cfg=.*'val': 1.*--graft mmengine"):
        module.init_weights()
    assert "init_cfg={'type': 'Constant'" in repr(module)
    assert "init_cfg" not in repr(Inner())


def test_a_part_that_is_marked_is_left_alone():
    outer = Sequential(Inner({"type": "Pretrained"}))
    outer[0].is_init = True
    outer.init_weights()
    assert outer[0].calls == 0


def test_a_dict_of_modules():
    modules = ModuleDict({"a": Inner()})
    modules.init_weights()
    assert modules["a"].calls == 1
