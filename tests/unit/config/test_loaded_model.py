import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.names import epoch_file
from tests.unit.cli.conftest import CONFIG as OF_CLI
from tests.unit.cli.conftest import MODULE as CLI_MODULE
from torch.utils.data import DataLoader, TensorDataset

import hookloop
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.config.loaded_model import LoadedModel
from hookloop.errors import ArgumentError, CheckpointError, ConfigError
from hookloop.hooks import SaveCheckpoint
from hookloop.testing import tiny_trainer

CONFIG = """\
seed: 0
max_epochs: 3
model: {type: torch.nn.Linear, in_features: 2, out_features: 1}
train_data: loaded_project.batches
val_data: loaded_project.batches
loss: mse_loss
optimizer: {type: SGD, lr: 1.2}
hooks: [AverageWeights]
default_hooks: {console: null, checkpoint: {type: SaveCheckpoint, best: val/loss}}
"""

MODULE = """
import torch

def batches():
    inputs = torch.randn(4, 8, 2, generator=torch.Generator().manual_seed(0))
    return [(batch, batch.sum(1, keepdim=True)) for batch in inputs]
"""
INPUTS = torch.ones(3, 2)


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    """A run of a config, whose data is not there any more."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loaded_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    trainer = build(load(tmp_path / "config.yaml"), run_dir=tmp_path / "run")
    trainer.train()
    (tmp_path / "loaded_project.py").unlink()
    yield tmp_path / "run"
    sys.modules.pop("loaded_project", None)


def test_one_line_gives_a_model_that_is_ready_for_use(run_dir):
    loaded = hookloop.load(run_dir, checkpoint="best")
    assert isinstance(loaded, LoadedModel)
    assert not loaded.model.training
    assert loaded.iteration == 4 and loaded.checkpoint == f"{run_dir}/best_loss_epoch_1.pth"
    state = torch.load(loaded.checkpoint)
    assert loaded.is_averaged
    assert torch.equal(loaded.model.weight, state["averaged"]["weight"])
    assert not torch.equal(loaded.model.weight, state["model"]["weight"])
    assert loaded.config["loss"] == "mse_loss"
    about = loaded.metadata()
    assert about["iter"] == 4 and about["weights"] == "averaged"
    # The weights that gave this very loss.
    batch = torch.randn(4, 8, 2, generator=torch.Generator().manual_seed(0))
    error = (loaded.predict(list(batch)) - batch.reshape(32, 2).sum(1, keepdim=True)) ** 2
    assert error.mean() == pytest.approx(loaded.metrics["val/loss"])
    assert hookloop.load(run_dir, checkpoint="last").iteration == 12
    assert hookloop.load(run_dir, checkpoint=epoch_file(2)).iteration == 8


@pytest.mark.parametrize("which", ["best", "last", epoch_file(3)])
def test_checkpoints_in_the_store_that_the_config_names_are_found(tmp_path, monkeypatch, which):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loaded_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    elsewhere = f"default_hooks.checkpoint.directory={tmp_path}/store"
    build(load(tmp_path / "config.yaml", [elsewhere]), run_dir=tmp_path / "run").train()
    assert hookloop.load(tmp_path / "run", checkpoint=which).checkpoint.startswith(
        f"{tmp_path}/store/run/"
    )
    sys.modules.pop("loaded_project")


def test_the_best_is_found_in_another_store_than_the_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loaded_project.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    best = "{type: SaveCheckpoint, name: far, every: null, last: false, directory: far, best: loss}"
    changes = [f"hooks=[{best}]", "default_hooks.checkpoint.best=null"]
    build(load("config.yaml", changes), run_dir="run").train()
    assert hookloop.load("run", checkpoint="best").checkpoint.startswith("far/run/best_loss")
    # Where the code of a hook is missing, what is in the run's directory is still found.
    config = (tmp_path / "run/config.yaml").read_text()
    (tmp_path / "run/config.yaml").write_text(config.replace("SaveCheckpoint", "gone.Hook", 1))
    assert hookloop.load("run", checkpoint="last").iteration == 12
    sys.modules.pop("loaded_project")


def test_a_store_that_no_config_names_is_not_opened(tmp_path):
    save = SaveCheckpoint(directory=str(tmp_path / "store"), best="val/loss")
    trainer = tiny_trainer(save, run_dir=tmp_path / "run")
    trainer.train()
    with pytest.raises(CheckpointError, match="store/run/"):
        hookloop.load(tmp_path / "run", checkpoint="best", model=trainer.run.model)


def test_one_batch_or_many(run_dir):
    loaded = hookloop.load(run_dir, checkpoint="last", device="cpu")
    one = loaded.predict(INPUTS)
    assert one.shape == (3, 1) and not one.requires_grad
    pairs = DataLoader(TensorDataset(INPUTS, torch.zeros(3)), batch_size=2)
    for inputs in (
        INPUTS.numpy(),
        (INPUTS, None),
        {"input": INPUTS},
        [INPUTS[:1], INPUTS[1:]],
        pairs,
    ):
        assert torch.equal(loaded.predict(inputs), one)
    assert isinstance(loaded.predict(np.ones((1, 2), dtype=np.float32)), torch.Tensor)


def test_a_run_without_a_config_needs_its_model(tmp_path):
    trainer = tiny_trainer(SaveCheckpoint(), run_dir=tmp_path)
    trainer.train()
    with pytest.raises(CheckpointError, match="model="):
        hookloop.load(tmp_path, checkpoint="last")
    loaded = hookloop.load(tmp_path, checkpoint="last", model=tiny_trainer().run.model)
    inputs = torch.ones(2, 4)
    assert torch.equal(loaded.predict(inputs), trainer.predict([inputs]))
    assert loaded.config == {} and not loaded.is_averaged
    with pytest.raises(CheckpointError, match="epoch_2.pth"):
        hookloop.load(tmp_path, checkpoint="best")
    with pytest.raises(CheckpointError, match="do not fit the model: "):
        hookloop.load(tmp_path, checkpoint="last", model=torch.nn.Linear(2, 2))


def test_a_config_that_cannot_be_built_says_why(run_dir):
    with pytest.raises(ConfigError, match=r"torch.nn.Linera"):
        hookloop.load(run_dir, ["model.type=torch.nn.Linera"], checkpoint="last")
    with pytest.raises(ArgumentError, match="needs checkpoint="):
        hookloop.load(run_dir, model=torch.nn.Linear(2, 2))


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., torch.nn.Module]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_project.py").write_text(CLI_MODULE)
    (tmp_path / "config.yaml").write_text(OF_CLI)

    def run(*changes: str) -> torch.nn.Module:
        trainer = build(load("config.yaml", changes), run_dir="runs/one")
        trainer.train()
        return trainer.run.model

    return run


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ([], "val_data"),
        (
            ["val_data={a: {type: cli_project.batches, seed: 5}, b: cli_project.batches}"],
            "val_data",
        ),
        (["val_data=null"], "data.test"),
        (["val_data=null", "data.test=null"], "train_data"),
    ],
)
def test_an_example_is_a_batch_of_the_data(
    train: Callable[..., torch.nn.Module], changes: list[str], key: str
) -> None:
    train(*changes)
    (inputs,), found = hookloop.load("runs/one", checkpoint="last").example_inputs()
    assert found == key and inputs.shape == (8, 2)


def test_data_without_a_batch_is_reported(train: Callable[..., torch.nn.Module]) -> None:
    train()
    config = Path("runs/one/config.yaml")
    config.write_text(config.read_text().replace("seed: 1", "count: 0"))
    with pytest.raises(ConfigError, match="val_data has no batch"):
        hookloop.load("runs/one", checkpoint="last").example_inputs()
