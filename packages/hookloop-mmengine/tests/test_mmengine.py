"""MMEngine's dialect beside the real MMEngine 0.10.7, whose results are recorded.

``scripts/record_mmengine.py`` makes the record; ``make downstream`` makes it again and compares.
"""

import contextlib
import json
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from tests.alike import assert_alike
from tests.downstream import mmengine_scenarios as scenarios

from hookloop import dialects
from hookloop.cli.main import cli
from hookloop.data.random.states import seed_all
from hookloop.errors import CheckpointError
from hookloop_mmengine.runner.checkpoint import Held, read_checkpoint

pytestmark = pytest.mark.slow  # Whole trainings, compared with recorded ones.

FIXTURES = Path(__file__).parents[3] / "tests" / "fixtures"
RECORD = json.loads((FIXTURES / "mmengine.json").read_text())
CHECKPOINT = FIXTURES / "mmengine_epoch_2.pth"
TUTORIAL = Path(__file__).parents[3] / "tests" / "downstream" / "tutorial.py"


@pytest.fixture(autouse=True)
def aliases():
    with dialects.alias("mmengine"):
        yield


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_the_dialect_does_what_mmengine_does(name):
    assert_alike(RECORD[name], scenarios.run(name))


def test_the_grid_of_checkpoints_is_compared_setting_by_setting():
    assert len(RECORD["checkpoint_grid"]) == len(scenarios.GRID) > 40


def test_a_training_continues_from_a_checkpoint_of_mmengine():
    rows, weights, rates = scenarios.run_resumed(CHECKPOINT)
    real_rows, real_weights, real_rates = RECORD["resumed"]
    assert_alike(real_rows, rows)
    assert_alike(real_weights, weights)
    assert_alike(real_rates, rates)


def test_a_checkpoint_of_mmengine_is_read_without_importing_what_it_names():
    checkpoint = read_checkpoint(CHECKPOINT)
    assert sorted(checkpoint["state_dict"]) == ["linear.bias", "linear.weight"]
    assert checkpoint["meta"]["epoch"] == 2
    assert checkpoint["optimizer"]["state"][0]["momentum_buffer"].shape == (1, 2)
    history = checkpoint["message_hub"]["log_scalars"]["train/loss"]
    assert isinstance(history, Held)
    assert type(history).__name__ == "HistoryBuffer"


class Evil:
    def __reduce__(self):
        return (open, ("evil.txt", "w"))


@pytest.mark.parametrize("hidden", [{"state_dict": Evil()}, {"meta": {"x": [Evil()]}}])
def test_code_in_a_checkpoint_does_not_run(hidden, tmp_path):
    torch.save({"state_dict": {}, **hidden}, tmp_path / "evil.pth")
    with contextlib.suppress(CheckpointError):  # A rejected file is as good as a stand-in.
        read_checkpoint(tmp_path / "evil.pth")
    assert not (tmp_path / "evil.txt").exists()


def test_the_getting_started_script_runs_unchanged(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["hookloop"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    command = ["run", "--alias", "mmengine", str(TUTORIAL), "--work-dir", "out"]
    seed_all(0)  # The script leaves its random numbers to the process.
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path("out").glob("*.pth")) == [
        f"epoch_{n}.pth" for n in range(1, 6)
    ]
    (lines,) = Path("out").glob("*/vis_data/scalars.json")
    last = json.loads(lines.read_text().splitlines()[-1])
    assert last["step"] == 5
    assert last["accuracy"] > 90


def test_a_run_is_resumed_where_it_was_left(tmp_path):
    def train(epochs, **options):
        cfg = {"by_epoch": True, "max_epochs": epochs}
        runner = scenarios.make_runner(
            str(tmp_path / "run"), (), {"type": "CheckpointHook", "interval": 1},
            train_cfg=cfg, **options,
        )  # fmt: skip
        runner.train()
        return runner

    whole = train(4).model.state_dict()
    for path in (tmp_path / "run").glob("*.pth"):
        path.unlink()
    train(2)
    resumed = train(4, resume=True)
    assert resumed.epoch == 4
    for name, value in resumed.model.state_dict().items():
        assert torch.equal(value, whole[name])
