"""``hookloop export``: the model of a run for other programs."""

import json
import sys
from pathlib import Path

import pytest
import torch
from tests import warm
from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke

from hookloop.config.loaded_model import load_model


@pytest.fixture
def run(project: Path, invoke: Invoke) -> Path:
    trained = invoke("train", "config.yaml", "--run-dir", "runs/one", "hooks=[AverageWeights]")
    assert trained.exit_code == 0, trained.output
    return project / "runs" / "one"


@pytest.mark.slow
def test_a_program_computes_what_the_model_computes(run: Path, invoke: Invoke) -> None:
    result = invoke("export", "runs/one", "--format", "torch.export", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["file"] == "runs/one/model.pt2" and told["any_batch_size"] is True
    assert told["kind"] == "last" and told["weights"] == "averaged" and told["difference"] == 0
    inside = {"hookloop.json": ""}
    program = torch.export.load(told["file"], extra_files=inside).module()
    assert json.loads(inside["hookloop.json"]) == told["metadata"]
    inputs = torch.randn(7, 2)
    assert torch.allclose(program(inputs), load_model(run, device="cpu").model(inputs))


def test_safetensors_needs_no_data(run: Path, invoke: Invoke, project: Path) -> None:
    from safetensors.torch import load_file

    options = [
        "--format",
        "safetensors",
        "--checkpoint",
        epoch_file(1),
        "--output",
        "w.safetensors",
    ]
    result = invoke("export", "runs/one", *options)
    assert result.exit_code == 0, result.output
    assert f"averaged weights of 'runs/one/{epoch_file(1)}'" in result.stdout
    assert set(load_file(project / "w.safetensors")) == {"weight", "bias"}


@pytest.mark.slow
def test_a_program_that_computes_something_else_is_not_kept(
    run: Path, invoke: Invoke, project: Path
) -> None:
    old = run / "model.pt2"
    old.write_text("what was there before")
    with (project / "cli_project.py").open("a") as module:  # A model with a hidden state.
        module.write(
            "\n\nclass Counting(torch.nn.Linear):\n    calls = 0\n\n"
            "    def forward(self, x):\n        Counting.calls += 1\n"
            "        return super().forward(x) * Counting.calls\n"
        )
    sys.modules.pop("cli_project")
    options = ["model={type: cli_project.Counting, in_features: 2, out_features: 1}"]
    trained = invoke("train", "config.yaml", "--run-dir", "runs/two", *options)
    assert trained.exit_code == 0, trained.output
    result = invoke("export", "runs/two", "--format", "torch.export", "--output", str(old))
    assert result.exit_code == 2, result.output
    assert "computes something else than the model" in result.output
    assert old.read_text() == "what was there before"
    assert not [path.name for path in run.iterdir() if ".tmp" in path.name]


def test_the_inputs_can_be_given_by_their_shape(run: Path, invoke: Invoke) -> None:
    options = ["--format", "torchscript", "--input-shape", "1,2"]
    result = invoke("export", "runs/one", *options)
    assert result.exit_code == 0, result.output
    assert "traced with random inputs of 1,2." in result.stdout and "run again" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input-shape", "1,x"], "'1,x' is not a shape"),
        (["--input-shape", "1,2:flaot32"], "not a type of torch. Did you mean 'float32'"),
        (["--input-shape", "1,9"], "cannot be traced as torch.export"),
        (["--checkpoint", "best"], "keeps no best checkpoint"),
        (["--output", "nowhere/model.pt2"], "There is no directory 'nowhere'"),
    ],
)
def test_a_mistake_is_explained(
    run: Path, invoke: Invoke, options: list[str], message: str
) -> None:
    result = invoke("export", "runs/one", "--format", "torch.export", *options)
    assert result.exit_code == 2 and message in result.stderr
    assert not (run / "model.pt2").exists()


@pytest.mark.slow
def test_onnx_is_the_default_and_is_run_again(run: Path) -> None:
    done = warm.run("export", "runs/one")
    assert done.returncode == 0 and done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first.startswith("runs/one/model.onnx: onnx, ")
    assert second == "  traced with a batch of val_data; it takes any number of samples."
    assert third.startswith("  run again: its output differs from the model's by at most ")
