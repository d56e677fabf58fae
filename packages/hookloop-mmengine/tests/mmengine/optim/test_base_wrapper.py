"""What all wrappers of optimizers have."""

import pytest
import torch

from hookloop_mmengine.optim import (
    AmpOptimWrapper,
    BaseOptimWrapper,
    OptimWrapper,
    OptimWrapperDict,
)


class Plain(BaseOptimWrapper):
    def update_params(self, loss):
        self.zero_grad()
        self.backward(loss)
        self.step()


def test_a_wrapper_of_a_project():
    weight = torch.nn.Parameter(torch.ones(1))
    wrapper = Plain(torch.optim.SGD([weight], lr=0.5, momentum=0.9))
    wrapper.update_params(weight.sum())
    assert weight.item() == 0.5
    assert wrapper.get_lr() == {"lr": [0.5]}
    assert wrapper.get_momentum() == {"momentum": [0.9]}
    assert wrapper.defaults["momentum"] == 0.9
    other = Plain(torch.optim.SGD([weight], lr=1.0))
    other.load_state_dict(wrapper.state_dict())
    assert other.param_groups[0]["lr"] == 0.5


def test_ours_are_such_wrappers():
    for kind in (OptimWrapper, AmpOptimWrapper, OptimWrapperDict):
        assert issubclass(kind, BaseOptimWrapper)
    with pytest.raises(TypeError, match="abstract"):
        BaseOptimWrapper(None)
