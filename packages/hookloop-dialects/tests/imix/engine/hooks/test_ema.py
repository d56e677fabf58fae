"""Models that keep an average of themselves."""

import pytest
import torch
from tests.imix.test_document import Averaging
from tests.imix.tracing import train

from hookloop.errors import HookError
from hookloop_dialects.imix import engine


class Wrapped(torch.nn.Module):
    """Hides the methods of its model, as DistributedDataParallel does."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, inputs):
        return self.module(inputs)


def test_the_average_follows_the_iterations(tmp_path):
    model = Averaging()
    train(tmp_path, engine.hooks.EMAIterHook(), model=model, max_iters=2)
    assert model.calls == ["init_ema", "update_ema", "update_ema"]


def test_the_weights_are_restored_and_the_average_saved_after_epochs(tmp_path):
    model = Averaging()
    train(tmp_path, engine.hooks.EMAEpochHook(), model=model, max_epochs=2)
    assert model.calls == [
        "load_bkp_state_dict", ("save_checkpoint_ema", 0),
        "load_bkp_state_dict", ("save_checkpoint_ema", 1),
    ]  # fmt: skip


def test_a_wrapped_model_is_found(tmp_path):
    model = Averaging()
    train(tmp_path, engine.hooks.EMAIterHook(), model=Wrapped(model), max_iters=1)
    assert model.calls == ["init_ema", "update_ema"]


def test_a_model_without_an_average_is_rejected_with_the_native_hook(tmp_path):
    with pytest.raises(
        HookError, match=r"model.init_ema\(\), which Sequential lacks.*AverageWeights"
    ):
        train(tmp_path, engine.hooks.EMAIterHook())
