import pytest
import torch
from tests.tiny import make_model

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks.weights.freeze_parameters import FrozenNorms, find_matching


def make_normed():
    body = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4, affine=False)
    )
    return torch.nn.Sequential(body, torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4))


def test_layers_whose_parameters_are_frozen_are_held():
    model = make_normed()
    model[0].requires_grad_(False)
    hook = Hook()
    held = FrozenNorms.of(hook, "eval")
    held.find(model)
    model.train()
    hook.before_train_iter(None)
    assert [module.training for module in (*model[0], model[1], model[2])] == [
        True, False, False, True, True,
    ]  # fmt: skip
    model[0][1].requires_grad_(True)  # Now the layer without parameters is in a module that trains.
    held.find(model)
    assert model[0][1].training and model[0][2].training


def test_by_default_nothing_is_held_and_nothing_is_called():
    hook = Hook()
    held = FrozenNorms.of(hook, "train")
    model = make_normed().requires_grad_(False)
    held.find(model)
    assert not held.layers
    assert "before_train_iter" not in vars(hook)


def test_an_unknown_mode_is_rejected():
    with pytest.raises(HookError, match="'train'.*'eval'"):
        FrozenNorms.of(Hook(), "freeze")


def test_a_pattern_without_a_match_is_rejected():
    named = dict(make_model().named_parameters())
    assert list(find_matching(Hook(), named, ["*.bias"])) == ["0.bias", "2.bias"]
    with pytest.raises(HookError, match="'0.weight'"):
        find_matching(Hook(), named, ["*.bias", "0.wieght"])
