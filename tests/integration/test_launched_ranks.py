"""A training under ``--ranks`` that loses a rank ends as if nothing had happened."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.cli.main import cli

PROJECT = """
import os, signal
import torch
from hookloop import Hook


def data():
    inputs = torch.randn(48, 2, generator=torch.Generator().manual_seed(0))
    return torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))


class LoseRank(Hook):
    def __init__(self, iteration=-1):
        self.iteration = iteration

    def after_update(self, run):
        lost = run.world.rank == 1 and run.world.restart == 0
        if lost and run.progress.iter == self.iteration:
            os.kill(os.getpid(), signal.SIGKILL)
"""

CONFIG = """
seed: 0
max_epochs: 3
model: {type: torch.nn.Linear, in_features: 2, out_features: 1}
train_data:
  type: torch.utils.data.DataLoader
  dataset: {type: launched_project.data}
  batch_size: 8
  shuffle: true
loss: mse_loss
optimizer: {type: SGD, lr: 0.1, momentum: 0.9}
default_hooks: {console: null}
hooks: {lose: {type: launched_project.LoseRank}}
"""


@pytest.mark.slow
def test_a_lost_rank_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launched_project.py").write_text(PROJECT)
    (tmp_path / "config.yaml").write_text(CONFIG)
    final = []
    for name, iteration in (("whole", -1), ("lost", 9)):
        arguments = [f"hooks.lose.iteration={iteration}", "--run-dir", f"runs/{name}"]
        options = ["--ranks", "2", "--restarts", "1"]
        result = CliRunner().invoke(cli, ["train", "config.yaml", *arguments, *options])
        assert result.exit_code == 0, result.output
        assert ("rank 1 was killed by SIGKILL" in result.output) is (iteration == 9)
        found = CheckpointStore(Path("runs") / name).newest()
        assert found is not None
        final.append(found[1])
    assert final[0]["progress"]["iter"] == 18
    assert compare(*final) == []
