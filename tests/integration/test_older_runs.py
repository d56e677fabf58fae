"""Runs that an earlier version began are continued to the end of the run without a break.

A fixture is a run directory as that version left it when the training was cut off after iteration
6 (the newest checkpoint is that of iteration 5), and ``whole.json``, the weights at the end of the
same training without a break, recorded by the same version.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tests.alike import assert_alike
from torch.utils.data import DataLoader, TensorDataset

from hookloop import HookloopError, Trainer, build, load
from hookloop.hooks import AverageWeights, MixUp, SaveCheckpoint, StopOnPlateau, WriteCSV
from hookloop.runs import RunDir, read_config, read_interventions

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


def test_the_config_of_an_earlier_version_is_converted_when_its_run_is_resumed(
    tmp_path, monkeypatch, caplog
):
    """The run ended at its limit of 2 epochs, and another one went on to 5 without a break."""
    shutil.copytree(FIXTURES / "config_of_0_3", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    config = load("run", ["max_epochs=5", "default_hooks.checkpoint=null"])
    trainer = build(config, run_dir="run", resume=True)
    assert trainer.train().status == "completed"
    assert_alike(json.loads(Path("whole.json").read_text()), weights_of(trainer))
    # Nothing seems to have changed but what was changed.
    resumed = [one.getMessage() for one in caplog.records if "Resumed with" in one.getMessage()]
    assert len(resumed) == 1 and "data." not in resumed[0] and "setup." not in resumed[0]
    changed = [one for one in read_interventions(RunDir(Path("run"))) if one["what"] == "change"]
    assert not [
        one for one in changed if one["key"].split(".")[0] in ("data", "setup", "val_every")
    ]
    assert read_config(RunDir(Path("run")))["data.limit.train"] == 4
    # The same text as a config of a user is rejected, with what to write instead.
    shutil.copy(FIXTURES / "config_of_0_3/run/config.yaml", "mine.yaml")
    with pytest.raises(HookloopError, match="mix: there is no such key. Write data.mix") as caught:
        build(load("mine.yaml"))
    assert str(caught.value).count("there is no such key") == 11
