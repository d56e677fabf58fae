"""The model of a test is wrapped for several views."""

from types import SimpleNamespace

import pytest
import torch

from hookloop_mmengine.hooks import PrepareTTAHook
from hookloop_mmengine.model import BaseTTAModel
from hookloop_mmengine.registry import MODELS


class ToyMean(BaseTTAModel):
    def __init__(self, weight=1, **kwargs):
        super().__init__(**kwargs)
        self.weight = weight

    def merge_preds(self, data_samples_list):
        return [sum(views) * self.weight / len(views) for views in data_samples_list]


@pytest.fixture(autouse=True)
def registered():
    MODELS.register_module(module=ToyMean)
    yield
    del MODELS.module_dict["ToyMean"]


def test_the_model_is_wrapped_before_a_test():
    model = torch.nn.Linear(1, 1)
    runner = SimpleNamespace(model=model)
    PrepareTTAHook({"type": "ToyMean", "weight": 3}).before_test(runner)
    assert isinstance(runner.model, ToyMean)
    assert runner.model.module is model
    assert runner.model.weight == 3
    assert not runner.model.training


def test_the_config_is_not_changed():
    cfg = {"type": "ToyMean"}
    PrepareTTAHook(cfg).before_test(SimpleNamespace(model=torch.nn.Linear(1, 1)))
    assert cfg == {"type": "ToyMean"}


def test_an_unknown_wrapper_is_named():
    hook = PrepareTTAHook({"type": "ToyMaen"})
    with pytest.raises(KeyError, match="ToyMaen is not in the mmengine::model registry.*ToyMean"):
        hook.before_test(SimpleNamespace(model=torch.nn.Linear(1, 1)))
