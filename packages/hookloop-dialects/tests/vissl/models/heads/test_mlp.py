"""Linear layers for the parts of a loss."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop import dialects
from hookloop_dialects.vissl import Task
from hookloop_dialects.vissl.models.heads import MLP


def kinds(layers):
    return [type(layer).__name__ for layer in layers.clf]


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        ({}, "Linear Linear"),
        ({"use_relu": True}, "Linear ReLU Linear"),
        ({"use_bn": True, "use_dropout": True}, "Linear BatchNorm1d Dropout Linear"),
        (
            {"use_bn": True, "skip_last_layer_relu_bn": False},
            "Linear BatchNorm1d Linear BatchNorm1d",
        ),
    ],
)
def test_what_follows_a_layer_follows_the_last_one_on_request(options, layers):
    config = Task(make_trainer().run).config
    assert kinds(MLP(config["MODEL"], [4, 8, 2], **options)) == layers.split()


def test_settings_of_heads_are_those_of_the_config():
    config = {"HEAD": {"PARAMS_MULTIPLIER": 0.0, "BATCHNORM_EPS": 0.5, "BATCHNORM_MOMENTUM": 0.3}}
    layers = MLP(config, [4, 8, 2], use_bn=True)
    assert (layers.clf[1].eps, layers.clf[1].momentum) == (0.5, 0.3)
    assert not layers(torch.ones(3, 4)).any()


def test_inputs_may_be_alone_in_a_list_and_have_dimensions_of_one():
    config = Task(make_trainer().run).config
    layers, inputs = MLP(config["MODEL"], [4, 2]), torch.ones(3, 4)
    for form in (inputs, [inputs], inputs[:, :, None, None]):
        assert torch.equal(layers(form), layers.clf(inputs))
    with pytest.raises(ValueError, match="unpack"):
        layers([inputs, inputs])


def test_hook_files_import_it():
    with dialects.alias("vissl"):
        from vissl.models.heads import MLP as imported
    assert imported is MLP
