"""What ``init_cfg`` names."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.model import (
    BaseInit,
    BaseModule,
    PretrainedInit,
    Sequential,
    initialize,
    update_init_info,
)
from hookloop_mmengine.model.weight_init import INITIALIZERS
from hookloop_mmengine.registry import WEIGHT_INITIALIZERS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.reg = nn.Conv1d(2, 2, 1), nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)


def values(net):
    return {name: value.flatten()[0].item() for name, value in net.named_parameters()}


def test_each_name_is_registered():
    for name, kind in INITIALIZERS.items():
        assert WEIGHT_INITIALIZERS.get(name) is kind


def test_only_layers_of_the_names_are_changed():
    net = Net()
    before = values(net)
    initialize(net, {"type": "Constant", "val": 7, "bias": 8, "layer": "Linear"})
    after = values(net)
    assert (after["reg.weight"], after["reg.bias"]) == (7, 8)
    assert after["conv.weight"] == before["conv.weight"]
    # The name of a base class counts, too.
    initialize(net, [{"type": "Constant", "val": 1, "layer": ["_BatchNorm", "_ConvNd"]}])
    assert values(net)["norm.weight"] == values(net)["conv.weight"] == 1
    assert values(net)["reg.weight"] == 7


def test_without_a_layer_nothing_is_changed_but_what_is_overridden():
    net = Net()
    before = values(net)
    override = {"type": "Constant", "name": "reg", "val": 3, "bias_prob": 0.5}
    initialize(net, {"type": "Constant", "val": 1, "override": override})
    after = values(net)
    assert (after["reg.weight"], after["reg.bias"]) == (3, 0)
    assert after["conv.weight"] == before["conv.weight"]


def test_an_override_takes_the_config_around_it():
    net = Net()
    entry = {"type": "Constant", "val": 2, "layer": "Conv1d", "override": [{"name": "reg"}]}
    initialize(net, entry)
    assert values(net)["reg.weight"] == values(net)["conv.weight"] == 2
    assert entry["override"] == [{"name": "reg"}]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (3, TypeError, "init_cfg must be a dict or a list of dict"),
        ({"type": "Constant", "val": 1, "override": 3}, TypeError, "override must be a dict"),
        ({"type": "Constant", "val": 1, "override": {}}, ValueError, 'contain the key "name"'),
        (
            {"type": "Constant", "val": 1, "override": {"name": "reg", "val": 2}},
            ValueError,
            'need "type" key',
        ),
        (
            {"type": "Constant", "val": 1, "override": {"name": "head"}},
            RuntimeError,
            "did not have attribute head",
        ),
        ({"type": "Normall"}, KeyError, "Did you mean 'Normal'"),
        ({"type": "Normal", "layer": 3}, TypeError, "layer must be a str or a list of str"),
        ({"type": "Normal", "bias": "1"}, TypeError, "bias must be a number"),
        ({"type": "Normal", "bias_prob": 1}, TypeError, "bias_prob type must be float"),
    ],
)
def test_a_wrong_config_is_rejected(config, error, message):
    with pytest.raises(error, match=message):
        initialize(Net(), config)


@pytest.mark.parametrize("name", sorted(set(INITIALIZERS) - {"Constant", "Pretrained"}))
def test_the_same_seed_gives_the_same_weights(name):
    nets = [Net(), Net()]
    for net in nets:
        torch.manual_seed(3)
        initialize(net, {"type": name, "layer": ["Linear", "Conv1d"], "bias": 0.5})
    assert values(nets[0])["reg.weight"] == values(nets[1])["reg.weight"]
    assert values(nets[0])["conv.bias"] == 0.5


@pytest.mark.parametrize("prefix", ["backbone", "backbone."])
def test_pretrained_weights_of_a_part_are_loaded(tmp_path, prefix):
    source = Net()
    saved = {f"backbone.{name}": value for name, value in source.state_dict().items()}
    torch.save({"state_dict": saved | {"head.weight": torch.ones(1)}}, tmp_path / "a.pth")
    net = Net()
    PretrainedInit(str(tmp_path / "a.pth"), prefix=prefix)(net)
    assert values(net) == values(source)
    with pytest.raises(AssertionError, match="neck. is not in the pretrained model"):
        PretrainedInit(str(tmp_path / "a.pth"), prefix="neck")(net)


def test_an_initializer_of_a_project():
    class HalfInit(BaseInit):
        def _init(self, layer):
            layer.weight.data.fill_(0.5)

    WEIGHT_INITIALIZERS.register_module(name="Half", module=HalfInit)
    try:
        module = Sequential(nn.Linear(2, 2), init_cfg={"type": "Half", "layer": "Linear"})
        module.init_weights()
    finally:
        del WEIGHT_INITIALIZERS.module_dict["Half"]
    assert module[0].weight.eq(0.5).all()


def test_what_was_done_is_noted_only_while_weights_are_initialized():
    class Own(BaseModule):
        def __init__(self):
            super().__init__({"type": "Constant", "val": 1, "layer": "Linear"})
            self.linear = nn.Linear(1, 1)

        def init_weights(self):
            super().init_weights()
            self.linear.weight.data.fill_(9)

    outer = Sequential(Own())
    with pytest.raises(AssertionError, match="Can not find `_params_init_info`"):
        update_init_info(outer, "nothing")
    outer.init_weights()
    assert not hasattr(outer[0], "_params_init_info")
    assert outer[0].linear.weight.item() == 9


def test_a_parameter_that_is_replaced_meanwhile_is_an_error():
    class Replacing(BaseModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def init_weights(self):
            self.weight = nn.Parameter(torch.zeros(1))

    with pytest.raises(AssertionError, match="new parameter named `weight`"):
        Sequential(Replacing()).init_weights()
