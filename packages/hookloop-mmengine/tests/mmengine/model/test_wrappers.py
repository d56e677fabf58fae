"""Models that wrap another model."""

import torch
from torch import nn

from hookloop_mmengine.model import is_model_wrapper
from hookloop_mmengine.model.wrappers import (
    MMDistributedDataParallel,
    ModelView,
    unwrapped,
)


def test_parallel_models_are_wrappers():
    assert is_model_wrapper(nn.DataParallel(nn.Linear(1, 1)))
    assert not is_model_wrapper(nn.Linear(1, 1))
    assert not is_model_wrapper(nn.Sequential(nn.Linear(1, 1)))


def test_mmengines_name_is_torchs_class():
    assert MMDistributedDataParallel is torch.nn.parallel.DistributedDataParallel


class Scaled(nn.Linear):
    factor = 2.0

    def forward(self, inputs, *, times=1.0):
        return self.factor * times * super().forward(inputs)

    def train_step(self, data):
        return f"step of {data}"


def test_a_view_passes_calls_and_attributes_to_the_model():
    model = Scaled(2, 1)
    view, inputs = ModelView(model), torch.ones(3, 2)
    assert is_model_wrapper(view) and view.module is model and unwrapped(view) is model
    assert unwrapped(model) is model
    assert torch.equal(view(inputs, times=3.0), model(inputs, times=3.0))
    assert view.factor == 2.0 and view.train_step("data") == "step of data"
    assert view.weight is model.weight
    assert list(view.state_dict()) == ["module.weight", "module.bias"]
    assert not hasattr(view, "unknown")
    with view.no_sync():
        view(inputs)


def test_a_view_has_the_mode_of_the_model():
    model = Scaled(2, 1).eval()
    view = ModelView(model)
    assert not view.training
    model.train()
    assert view.training
    view.eval()
    assert not model.training
