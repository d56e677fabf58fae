import pytest
import torch
from tests.mmengine.parts import Net
from torch import nn

from hookloop.errors import ModelError
from hookloop_mmengine.runner.features import (
    check_features,
    compile_step,
    recompute_activations,
    with_plain_norms,
)


@pytest.mark.parametrize(
    ("cfg", "is_alone", "message"),
    [
        ({"efficient_conv_bn_eval": ["backbone"]}, True, "efficient_conv_bn_eval is not offered"),
        ({"sync_bn": "torch"}, False, "sync_bn='torch' is not offered"),
        ({"model_wrapper_cfg": {"type": "MMFullyShardedDataParallel"}}, False, "FullyShard"),
    ],
)
def test_what_is_not_offered_is_named(cfg, is_alone, message):
    with pytest.raises(ModelError, match=message):
        check_features(cfg, is_alone=is_alone)


def test_what_one_process_does_not_need_is_accepted_as_in_mmengine():
    check_features({"sync_bn": "torch", "model_wrapper_cfg": {"type": "Any"}}, is_alone=True)
    check_features({"model_wrapper_cfg": {"find_unused_parameters": True}}, is_alone=False)
    with pytest.raises(TypeError, match="`compile` should be a dict or bool"):
        check_features({"compile": "fast"}, is_alone=True)


def test_synchronized_norms_become_plain_ones():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.SyncBatchNorm(2), nn.Sequential(nn.Linear(1, 1)))
    weight, mean = model[1].weight, model[1].running_mean
    plain = with_plain_norms(model)
    assert plain is model
    assert plain[1].weight is weight
    assert plain[1].running_mean is mean
    plain(torch.ones(2, 1, 3, 1))
    assert isinstance(with_plain_norms(nn.SyncBatchNorm(2)), nn.modules.batchnorm._BatchNorm)


def test_activations_are_computed_again_with_the_same_gradients():
    calls = []

    class Counted(nn.Linear):
        def forward(self, inputs):
            calls.append(1)
            return super().forward(inputs)

    model = nn.Sequential(Counted(2, 2), nn.Linear(2, 1))
    model(torch.ones(1, 2)).sum().backward()
    expected = model[0].weight.grad.clone()
    model.zero_grad()
    recompute_activations(model, "0")
    recompute_activations(model, ["0"])  # Of a second training: nothing is wrapped twice.
    calls.clear()
    model(torch.ones(1, 2)).sum().backward()
    assert len(calls) == 2
    assert torch.equal(model[0].weight.grad, expected)
    with pytest.raises(ModelError, match="the model has no 'backbone'"):
        recompute_activations(model, "backbone")


def test_a_step_is_compiled_once(monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "compile", lambda step, **options: seen.append(options) or step)
    model = Net()
    compile_step(model, False, "train_step")
    compile_step(model, None, "train_step")
    for _ in range(2):
        compile_step(model, {"backend": "eager"}, "train_step")
    compile_step(model, True, "val_step")
    assert seen == [{"backend": "eager"}, {}]
