"""Several views of each sample, merged."""

import pytest
import torch

from hookloop_mmengine.model import BaseModel, BaseTTAModel
from hookloop_mmengine.registry import MODELS


class ToyDouble(BaseModel):
    def forward(self, inputs, mode="tensor"):
        return [2 * value for value in inputs]


class Mean(BaseTTAModel):
    def merge_preds(self, data_samples_list):
        return [sum(views) / len(views) for views in data_samples_list]


@pytest.mark.parametrize("wrap", [lambda views: {"inputs": views}, lambda views: [views]])
def test_the_predictions_of_all_views_are_merged(wrap):
    # Two views of three samples each.
    views = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 4.0, 5.0])]
    assert [float(value) for value in Mean(ToyDouble()).test_step(wrap(views))] == [4, 6, 8]


def test_the_model_may_be_described():
    MODELS.register_module(module=ToyDouble)
    try:
        assert isinstance(Mean({"type": "ToyDouble"}).module, ToyDouble)
    finally:
        del MODELS.module_dict["ToyDouble"]


def test_merging_and_the_test_step_are_its_only_uses():
    with pytest.raises(NotImplementedError, match="define merge_preds"):
        BaseTTAModel(ToyDouble()).test_step({"inputs": [torch.ones(1)]})
    with pytest.raises(NotImplementedError, match="only used through test_step"):
        Mean(ToyDouble())(torch.ones(1))
