"""Rules per parameter, and the optimizer that is built from them."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.optim import (
    AmpOptimWrapper,
    DefaultOptimWrapperConstructor,
    OptimWrapper,
    build_optim_wrapper,
)
from hookloop_mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS

SGD = {"type": "SGD", "lr": 0.1, "weight_decay": 0.01, "momentum": 0.9}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1, groups=4)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(3))


def settings(rules, model=None, **options):
    """Builds and returns (lr multiplier, decay multiplier) of each parameter by name."""
    model = model or Model()
    wrapper = build_optim_wrapper(model, {"optimizer": SGD | options, "paramwise_cfg": rules})
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        names[id(group["params"][0])]: (
            round(group["lr"] / 0.1, 6),
            round(group["weight_decay"] / 0.01, 6),
        )
        for group in wrapper.optimizer.param_groups
    }


def test_without_rules_there_is_one_group():
    wrapper = build_optim_wrapper(Model(), {"optimizer": SGD})
    (group,) = wrapper.optimizer.param_groups
    assert len(group["params"]) == 7
    assert type(wrapper) is OptimWrapper
    assert isinstance(wrapper.optimizer, torch.optim.SGD)


PLAIN = (1, 1)


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        ({"bias_lr_mult": 2.0}, {"conv.bias": (2, 1), "head.bias": (2, 1)}),
        ({"bias_decay_mult": 0.0}, {"conv.bias": (1, 0), "head.bias": (1, 0), "norm.bias": (1, 0)}),
        ({"norm_decay_mult": 0.0}, {"norm.weight": (1, 0), "norm.bias": (1, 0)}),
        ({"flat_decay_mult": 0.5},
         dict.fromkeys(("scale", "norm.weight", "norm.bias", "conv.bias", "head.bias"), (1, 0.5))),
        ({"dwconv_decay_mult": 0.0, "bias_decay_mult": 0.5},
         {"conv.weight": (1, 0),
          **dict.fromkeys(("conv.bias", "head.bias", "norm.bias"), (1, 0.5))}),
        ({"dwconv_decay_mult": 0.0}, {"conv.weight": (1, 0), "conv.bias": (1, 0)}),
        ({"custom_keys": {"head": {"lr_mult": 0.1}}},
         {"head.weight": (0.1, 1), "head.bias": (0.1, 1)}),
        ({"custom_keys": {"head": {"lr_mult": 0.1}, "head.bias": {"decay_mult": 0.0}}},
         {"head.weight": (0.1, 1), "head.bias": (1, 0)}),
        # A custom key wins over the rules for kinds of parameters.
        ({"bias_lr_mult": 2.0, "custom_keys": {"conv": {}}}, {"head.bias": (2, 1)}),
    ],
    ids=str,
)  # fmt: skip
def test_rules_of_kinds_of_parameters(rules, changed):
    plain = {name: PLAIN for name, _ in Model().named_parameters()}
    assert settings(rules) == plain | changed


def test_frozen_and_shared_parameters():
    model = Model()
    model.head.weight.requires_grad_(False)
    model.again = model.head
    found = settings({"custom_keys": {"head": {"lr_mult": 0.1}}}, model)
    assert "head.weight" not in found  # As in MMEngine: what is frozen is left out.
    assert len(found) == 6


class Layered(DefaultOptimWrapperConstructor):
    """A constructor of a project, with a rule of its own."""

    def add_params(self, params, module, prefix="", is_dcn_module=None):
        rate = self.paramwise_cfg["decay_rate"]
        for number, (_, parameter) in enumerate(module.named_parameters()):
            params.append({"params": [parameter], "lr": self.base_lr * rate**number})


def test_a_projects_constructor_reads_rules_of_its_own():
    OPTIM_WRAPPER_CONSTRUCTORS.register_module(module=Layered, force=True)
    wrapper = build_optim_wrapper(
        torch.nn.Linear(1, 1),
        {"constructor": "Layered", "optimizer": SGD, "paramwise_cfg": {"decay_rate": 0.5}},
    )
    rates = [group["lr"] for group in wrapper.optimizer.param_groups]
    assert rates == [SGD["lr"], SGD["lr"] * 0.5]


def test_settings_of_the_optimizer_may_be_among_custom_keys():
    rules = {"custom_keys": {"head": {"momentum": 0.5}}}
    wrapper = build_optim_wrapper(Model(), {"optimizer": SGD, "paramwise_cfg": rules})
    assert [g["momentum"] for g in wrapper.optimizer.param_groups].count(0.5) == 2


@pytest.mark.parametrize(
    "rules", [{"bias_decay_mult": 0}, {"custom_keys": {"a": {"decay_mult": 0}}}]
)
def test_a_multiplier_of_no_decay_is_rejected(rules):
    cfg = {"optimizer": {"type": "SGD", "lr": 0.1}, "paramwise_cfg": rules}
    with pytest.raises(ValueError, match="base_wd should not be None"):
        build_optim_wrapper(Model(), cfg)


def test_an_unknown_rule_is_rejected_with_the_nearest():
    with pytest.raises(KeyError, match="paramwise_cfg has no 'bias_lr_mul'.*'bias_lr_mult'"):
        settings({"bias_lr_mul": 2})


def test_the_kind_of_wrapper_and_its_arguments():
    cfg = {
        "type": "AmpOptimWrapper",
        "dtype": "bfloat16",
        "optimizer": SGD,
        "accumulative_counts": 3,
    }
    wrapper = build_optim_wrapper(Model(), cfg)
    assert isinstance(wrapper, AmpOptimWrapper)
    assert wrapper._accumulative_counts == 3
    assert cfg["optimizer"] is SGD


def test_an_optimizer_object_is_used_as_it_is():
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    assert DefaultOptimWrapperConstructor({"optimizer": optimizer})(model).optimizer is optimizer


def test_the_optimizer_is_needed():
    with pytest.raises(AssertionError, match='must contain "optimizer" config'):
        DefaultOptimWrapperConstructor({"type": "OptimWrapper"})


def test_the_inner_model_of_a_wrapper_is_used():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = nn.Linear(1, 1)
            self.other = nn.Linear(1, 1)

    wrapper = build_optim_wrapper(Wrapped(), {"optimizer": SGD})
    assert len(wrapper.optimizer.param_groups[0]["params"]) == 2


def test_another_constructor_is_found_by_name():
    @OPTIM_WRAPPER_CONSTRUCTORS.register_module()
    class ToyConstructor(DefaultOptimWrapperConstructor):
        def __call__(self, model):
            return "made", self.paramwise_cfg

    try:
        cfg = {
            "optimizer": SGD,
            "constructor": "ToyConstructor",
            "paramwise_cfg": {"bias_lr_mult": 2},
        }
        assert build_optim_wrapper(Model(), cfg) == ("made", {"bias_lr_mult": 2})
    finally:
        del OPTIM_WRAPPER_CONSTRUCTORS.module_dict["ToyConstructor"]
