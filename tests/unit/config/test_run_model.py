"""The model of a run, with the weights of one of its checkpoints."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.unit.cli.conftest import CONFIG, MODULE

from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.config.run_model import load_run_model
from hookloop.errors import CheckpointError, ConfigError


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., torch.nn.Module]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)

    def run(*changes: str) -> torch.nn.Module:
        trainer = build(load("config.yaml", changes), run_dir="runs/one")
        trainer.train()
        return trainer.run.model

    return run


def test_it_is_the_model_that_was_trained(train: Callable[..., torch.nn.Module]) -> None:
    trained = train()
    made = load_run_model("runs/one")
    assert made.chosen.kind == "last" and not made.model.training
    assert torch.equal(made.model.weight, trained.weight)
    assert made.metadata()["iter"] == 8


def test_averaged_weights_are_used_where_the_run_used_them(
    train: Callable[..., torch.nn.Module],
) -> None:
    trained = train("hooks=[AverageWeights]", "default_hooks.checkpoint.best=loss")
    made = load_run_model("runs/one")
    assert made.chosen.kind == "best" and made.chosen.part == "averaged"
    assert not torch.equal(made.model.weight, trained.weight)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ([], "val_data"),
        (
            ["val_data={a: {type: cli_project.batches, seed: 5}, b: cli_project.batches}"],
            "val_data",
        ),
        (["val_data=null"], "test_data"),
        (["val_data=null", "test_data=null"], "train_data"),
    ],
)
def test_an_example_is_a_batch_of_the_data(
    train: Callable[..., torch.nn.Module], changes: list[str], key: str
) -> None:
    train(*changes)
    (inputs,), found = load_run_model("runs/one").example_inputs()
    assert found == key and inputs.shape == (8, 2)


def test_a_store_of_its_own_is_found(train: Callable[..., torch.nn.Module]) -> None:
    train("default_hooks.checkpoint.directory=store")
    assert load_run_model("runs/one").chosen.path == "store/one/epoch_2.pth"


def test_data_without_a_batch_is_reported(train: Callable[..., torch.nn.Module]) -> None:
    train()
    config = Path("runs/one/config.yaml")
    config.write_text(config.read_text().replace("seed: 1", "count: 0"))
    with pytest.raises(ConfigError, match="val_data has no batch"):
        load_run_model("runs/one").example_inputs()


def test_weights_of_another_model_are_rejected(train: Callable[..., torch.nn.Module]) -> None:
    train()
    config = Path("runs/one/config.yaml")
    config.write_text(config.read_text().replace("in_features: 2", "in_features: 3"))
    with pytest.raises(CheckpointError, match="do not fit the model: size mismatch"):
        load_run_model("runs/one")
