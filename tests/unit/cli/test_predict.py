"""``hookloop predict``: write what a trained model says about data."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke

BEST = "default_hooks.checkpoint={type: SaveCheckpoint, best: val/loss}"


@pytest.fixture
def run(invoke: Invoke) -> str:
    """A run that gets worse, so that the best checkpoint is not the last one."""
    result = invoke("train", "config.yaml", "--run-dir", "run", "optimizer.lr=1.2", BEST)
    assert "tested run/best_loss_epoch_1.pth (val/loss " in result.stdout
    return "run"


def test_a_stream_is_written_to_the_run(invoke: Invoke, run: str) -> None:
    result = invoke("predict", run, "test_data")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("run/predictions/test_data.csv  by run/best_loss_epoch_1.pth (")
    assert len(Path("run/predictions/test_data.csv").read_text().splitlines()) == 33


def test_the_checkpoint_is_chosen_and_told(invoke: Invoke, run: str) -> None:
    outputs = {}
    for which in ("best", "last", f"run/{epoch_file(2)}"):
        result = invoke(
            "predict", run, "val_data", "--checkpoint", which, "--to", "out.npz", "--json"
        )
        found = json.loads(result.stdout)
        assert found["predictions"] == "out.npz" and found["data"] == "val_data"
        outputs[found["checkpoint"]] = np.load("out.npz")["output"]
    assert list(outputs) == ["run/best_loss_epoch_1.pth", f"run/{epoch_file(2)}"]
    assert not np.allclose(*outputs.values())


def test_a_file_of_inputs(invoke: Invoke, run: str) -> None:
    Path("in.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    result = invoke("predict", run, "in.csv", "--batch-size", "2")
    assert result.exit_code == 0, result.output
    assert len(Path("run/predictions/in.csv").read_text().splitlines()) == 4
    assert invoke("predict", run, "missing.csv").exit_code == 2


def test_predict_data_of_the_config(invoke: Invoke, run: str) -> None:
    data = "data.predict={type: cli_project.batches, seed: 7, count: 2}"
    assert invoke("predict", run, "predict_data", data, "--to", "out.csv").exit_code == 0
    assert len(Path("out.csv").read_text().splitlines()) == 17


def test_a_config_needs_a_file_to_write(invoke: Invoke) -> None:
    result = invoke("predict", "config.yaml", "val_data")
    assert result.exit_code == 2 and "--to is missing" in result.stderr
    result = invoke("predict", "config.yaml", "nothing", "--to", "out.csv")
    assert "There are: val_data, test_data" in result.stderr
    result = invoke("predict", "config.yaml", "val_data", "--checkpoint", "best", "--to", "o.csv")
    assert "needs the directory of a run" in result.stderr


def test_test_takes_the_best_and_validate_the_last(invoke: Invoke, run: str) -> None:
    best, last = invoke("test", run).stdout, invoke("test", run, "--checkpoint", "last").stdout
    assert best.startswith("run/best_loss_epoch_1.pth (val/loss ")
    assert last.startswith(f"run/{epoch_file(2)}  test/loss")
    assert invoke("validate", run).stdout.startswith(f"run/{epoch_file(2)}")
    assert invoke("validate", run, "--checkpoint", "best").stdout.startswith("run/best_loss")
