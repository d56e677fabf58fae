"""``hookloop model``: the modules of a config's model."""

import json
from pathlib import Path

import pytest
from tests import warm
from tests.unit.cli.conftest import Invoke

NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5))
        self.head = torch.nn.Linear(4, 1)
        self.body[0].requires_grad_(False)

    def forward(self, inputs):
        return self.head(self.body(inputs))
"""

TWO_STREAMS = """
import torch
from cli_net import Net

model = Net()
train_data = {
    "a": [(torch.ones(5, 2), torch.ones(5, 1))],
    "b": [(torch.ones(2, 2), torch.ones(2, 1))],
}
optimizer = dict(type="SGD", lr=0.1)
max_epochs = 1


def step(run, batch):
    both = list(batch.values()) if isinstance(batch, dict) else [batch]
    inputs, targets = (torch.cat(parts) for parts in zip(*both))
    return torch.nn.functional.mse_loss(run.model(inputs), targets)
"""


@pytest.fixture
def net(project: Path) -> Path:
    (project / "cli_net.py").write_text(NET)
    return project


def test_modules_shapes_and_what_trains_are_printed(net: Path, invoke: Invoke) -> None:
    result = invoke("model", "config.yaml", "model=cli_net.Net")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "module              output         parameters  trains",
        "Net                 float32[8, 1]          17     29%",
        "  body: Sequential  float32[8, 4]          12      0%",
        "    0: Linear       float32[8, 4]          12      0%",
        "    1: Dropout      float32[8, 4]",
        "  head: Linear      float32[8, 1]           5    100%",
        "",
        "17 parameters, 5 of them train.",
    ]
    assert not (net / "runs").exists()


@pytest.mark.parametrize("mix", ["in order", "cycle"])
def test_several_streams_are_shown_as_the_model_sees_them(
    net: Path, invoke: Invoke, mix: str
) -> None:
    (net / "two_streams.py").write_text(TWO_STREAMS)
    result = invoke("model", "two_streams.py", f"data.mix={mix}")
    assert result.exit_code == 0, result.output
    sizes = {"in order": "5", "cycle": "7"}  # Of the first stream, or of both, one after the other.
    assert f"Net                 float32[{sizes[mix]}, 1]" in result.stdout


def test_the_depth_is_limited(net: Path, invoke: Invoke) -> None:
    result = invoke("model", "config.yaml", "model=cli_net.Net", "--depth", "1")
    assert "Dropout" not in result.stdout
    assert "2 modules are deeper: --depth 2." in result.stdout


def test_a_model_without_data_is_described_without_shapes(net: Path, invoke: Invoke) -> None:
    result = invoke("model", "config.yaml", "train_data=null")
    assert result.exit_code == 0, result.output
    assert "3 parameters" in result.stdout
    assert "float32" not in result.stdout


def test_a_batch_that_does_not_fit_names_the_module(net: Path, invoke: Invoke) -> None:
    result = invoke("model", "config.yaml", "model.in_features=3")
    assert result.exit_code == 1
    assert "in model (Linear(in_features=3, out_features=1, bias=True))" in result.stderr


@pytest.mark.slow
def test_the_command_prints_one_object(net: Path) -> None:
    done = warm.run("model", "config.yaml", "model=cli_net.Net", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["parameters"], found["trainable"]) == (17, 5)
    assert [row["path"] for row in found["modules"]] == ["", "body", "body.0", "body.1", "head"]
