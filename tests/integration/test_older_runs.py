"""Runs that an earlier version began are continued to the end of the run without a break.

A fixture is a run directory as that version left it when the training was cut off after iteration
6 (the newest checkpoint is that of iteration 5), and ``whole.json``, the weights at the end of the
same training without a break, recorded by the same version.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.alike import assert_alike
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Trainer
from hookloop.hooks import AverageWeights, MixUp, SaveCheckpoint, StopOnPlateau, WriteCSV

FIXTURES = Path(__file__).parent.parent / "fixtures"


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()


def make_trainer(run_dir, **options):
    """The training of the fixtures: dropout, accumulation, schedule, EMA and random mixing."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3)
    )
    inputs = torch.randn(22, 4, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(inputs, inputs[:, :3].argmax(1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    return Trainer(
        model,
        train_data=DataLoader(data, batch_size=3, shuffle=True),
        val_data=DataLoader(data, batch_size=5),
        loss=torch.nn.functional.cross_entropy,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5),
        metrics={"accuracy": accuracy},
        accumulate=2,
        max_epochs=3,
        seed=5,
        default_hooks={"console": None, "checkpoint": SaveCheckpoint(every="1 iter", keep=1)},
        hooks=[
            AverageWeights(momentum=0.1),
            StopOnPlateau("val/loss", patience=50),
            WriteCSV(),
            MixUp(3),
        ],
        run_dir=run_dir,
        **options,
    )


def weights_of(trainer):
    return {name: w.flatten().tolist() for name, w in trainer.run.model.state_dict().items()}


@pytest.mark.parametrize("version", ["0_2"])
def test_a_run_of_an_earlier_version_continues_to_the_end_of_the_whole_run(version, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(FIXTURES / f"run_{version}", run_dir)
    trainer = make_trainer(run_dir, resume=True)

    assert trainer.train().status == "completed"

    assert trainer.run.progress.iter == 12
    assert_alike(json.loads((run_dir / "whole.json").read_text()), weights_of(trainer))
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    validations = [line["iter"] for line in lines if line["phase"] == "val"]
    assert validations == [4, 8, 12]


def test_the_whole_run_still_ends_with_the_recorded_weights(tmp_path):
    trainer = make_trainer(tmp_path)
    trainer.train()
    recorded = json.loads((FIXTURES / "run_0_2" / "whole.json").read_text())
    assert_alike(recorded, weights_of(trainer))
