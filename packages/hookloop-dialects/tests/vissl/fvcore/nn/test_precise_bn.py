"""Exact statistics of batch norm."""

import pytest
import torch

from hookloop_dialects.vissl.fvcore.nn import get_bn_modules, update_bn_stats


@pytest.mark.parametrize("sizes", [(4, 4), (5, 2, 1)])
def test_the_statistics_are_those_of_all_samples(sizes):
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3, momentum=0.3))
    batches = [torch.randn(size, 2, 4, 4) for size in sizes]
    with torch.no_grad():
        inputs = model[0](torch.cat(batches)).transpose(0, 1).flatten(1)
    update_bn_stats(model, batches, len(sizes))
    assert torch.allclose(model[1].running_mean, inputs.mean(1), atol=1e-5)
    assert torch.allclose(model[1].running_var, inputs.var(1, unbiased=False), atol=1e-5)
    assert model[1].momentum == 0.3 and not model[1]._forward_pre_hooks


def test_too_few_batches_are_an_error_and_layers_in_evaluation_stay():
    model = torch.nn.BatchNorm1d(2)
    with pytest.raises(AssertionError, match="wants 3 batches, there are 1"):
        update_bn_stats(model, [torch.ones(2, 2)], 3)
    model.eval()
    assert get_bn_modules(model) == []
    update_bn_stats(model, [], 3)
