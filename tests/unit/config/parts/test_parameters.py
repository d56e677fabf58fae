"""Which parameters an optimizer of a config gets, and in which groups."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.config.build import arguments, build
from hookloop.config.tree import Config
from hookloop.errors import ConfigError

Write = Callable[..., Config]

MODEL = "model: proj.Net\n"
SGD = "optimizer: {type: SGD, lr: 0.1}\n"


def names_in(model: torch.nn.Module, group: dict[str, Any]) -> list[str]:
    chosen = {id(parameter) for parameter in group["params"]}
    return [name for name, parameter in model.named_parameters() if id(parameter) in chosen]


def test_an_optimizer_gets_the_parameters_in_groups(write: Write) -> None:
    given: dict[str, Any] = arguments(
        write(
            MODEL + "optimizer:\n"
            "  type: AdamW\n"
            "  lr: 1e-3\n"
            "  groups:\n"
            "    - {norms: true, weight_decay: 0}\n"
            "    - {match: '*.bias', weight_decay: 0, lr: 1e-4}\n"
            "    - {match: ['body.*'], lr: 1e-5, name: body}\n"
        )
    )
    groups = given["optimizer"].param_groups
    model = given["model"]
    assert [names_in(model, group) for group in groups] == [
        ["norm.weight", "norm.bias"],
        ["body.bias", "head.bias"],
        ["body.weight"],
        ["head.weight"],
    ]
    assert [group["lr"] for group in groups] == [1e-3, 1e-4, 1e-5, 1e-3]
    assert [group["weight_decay"] for group in groups] == [0, 0, 0.01, 0.01]


LAYERS = """\
import torch

class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(3, 4)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(11))
        self.norm = torch.nn.LayerNorm(4)
        self.head = torch.nn.Linear(4, 2)
"""


def test_the_rate_decays_from_layer_to_layer(write: Write, project: Path) -> None:
    (project / "deep.py").write_text(LAYERS)
    groups = "[{match: 'head.*'}, {match: '*', decay: 0.5, weight_decay: 0}]"
    given: dict[str, Any] = arguments(
        write(f"model: deep.Deep\noptimizer: {{type: SGD, lr: 0.8, groups: {groups}}}\n")
    )
    head, *layers = given["optimizer"].param_groups
    assert head["lr"] == 0.8 and names_in(given["model"], head) == ["head.weight", "head.bias"]
    assert [group["lr"] for group in layers] == [0.8 * 0.5**place for place in range(12)]
    names = [names_in(given["model"], group) for group in layers]
    assert names[0] == ["layers.10.weight", "layers.10.bias", "norm.weight", "norm.bias"]
    assert names[1] == ["layers.9.weight", "layers.9.bias"]
    assert names[-1] == ["embed.weight"]
    assert [group["name"] for group in layers[:2]] == ["layer_10", "layer_9"]
    assert layers[-1]["name"] == "layer_first"


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("{match: '*', decay: 1.5}", "decay is a share of the rate above 0 and up to 1, not 1.5"),
        ("{match: '*', decay: half}", "optimizer.groups[0].decay: expected"),
    ],
)
def test_a_decay_is_a_share(write: Write, group: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        build(write(f"{MODEL}optimizer: {{type: SGD, lr: 1, groups: [{group}]}}\n"))


def test_a_decay_needs_a_rate(write: Write) -> None:
    with pytest.raises(ConfigError, match="there is no rate to decay: give lr"):
        build(write(f"{MODEL}optimizer: {{type: Adam, groups: [{{match: '*', decay: 0.9}}]}}\n"))


def test_frozen_parameters_are_left_out(write: Write, project: Path) -> None:
    (project / "frozen.py").write_text(
        "from proj import Net\n"
        "def frozen():\n"
        "    net = Net()\n"
        "    net.body.requires_grad_(False)\n"
        "    return net\n"
        "def all_frozen():\n"
        "    return Net().requires_grad_(False)\n"
    )
    given: dict[str, Any] = arguments(
        write(
            "model: frozen.frozen\n"
            "optimizer: {type: SGD, lr: 1, groups: [{match: 'body.*', lr: 2}]}\n"
        )
    )
    (group,) = given["optimizer"].param_groups
    assert "body.weight" not in names_in(given["model"], group)
    with pytest.raises(ConfigError, match="a.yaml:\\d+: model= has no trainable parameters"):
        build(write(f"model: frozen.all_frozen\n{SGD}"))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            "[{match: 'bdoy.weight', lr: 1}]",
            "a.yaml:2: optimizer.groups[0].match: 'bdoy.weight' matches no parameter of the model. "
            "Did you mean 'body.weight'?",
        ),
        (
            "[{match: 'zebra.*', lr: 1}]",
            "matches no parameter of the model. It has body.weight, body.bias, norm.weight",
        ),
        (
            "[{match: '*.weight', lr: 1}, {match: 'body.weight', lr: 2}]",
            "optimizer.groups[1]: every parameter that it matches (body.weight) is in an earlier",
        ),
    ],
)
def test_a_group_that_gets_nothing_is_rejected(write: Write, groups: str, message: str) -> None:
    config = write(f"{MODEL}optimizer: {{type: SGD, lr: 1, groups: {groups}}}\n")
    with pytest.raises(ConfigError) as caught:
        arguments(config)
    assert message in str(caught.value)


def test_a_model_without_norms_has_no_group_for_them(write: Write) -> None:
    given: dict[str, Any] = arguments(
        write(
            "model: {type: torch.nn.Linear, in_features: 2, out_features: 1}\n"
            "optimizer: {type: SGD, lr: 1, groups: [{norms: true, lr: 2}]}\n"
        )
    )
    (group,) = given["optimizer"].param_groups
    assert names_in(given["model"], group) == ["weight", "bias"]
    assert group["lr"] == 1


def test_a_pattern_for_params_that_matches_nothing_is_rejected_with_its_line(write: Write) -> None:
    config = write(f"{MODEL}optimizer:\n  type: SGD\n  lr: 1\n  params: ['haed.*']\n")
    with pytest.raises(ConfigError, match=r"a.yaml:5.*optimizer.params.*'haed.\*'"):
        arguments(config)
