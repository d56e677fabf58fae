"""The configuration at the end of emloop's document, as a hookloop config."""

import signal
from pathlib import Path

import pytest
import torch
from tests.readback import csv_rows, tensorboard_points

from hookloop import Interrupted
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import ConfigError

CONFIG = Path(__file__).parents[2] / "examples" / "emloop_document" / "config.yaml"


def make(run_dir, *overrides):
    return build(load(CONFIG, [f"run_dir={run_dir}", "default_hooks.console=null", *overrides]))


def test_every_hook_of_the_document_does_its_part(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("logging.root.handlers", [])
    trainer = make(tmp_path / "run", "hooks.stop.epochs=12")
    outcome = trainer.train()
    run = tmp_path / "run"
    assert (outcome.status, outcome.reason) == ("stopped", "12 epochs are done")
    rows = csv_rows(run / "metrics.csv")
    means = [float(row["train/loss/mean"]) for row in rows]
    assert len(rows) == 12 and means[-1] < means[0] / 2
    points = tensorboard_points(run / "tensorboard", "val/loss/mean")
    assert [value for _, value in points] == pytest.approx(
        [float(row["val/loss/mean"]) for row in rows], rel=1e-6
    )
    assert capsys.readouterr().out.count("val/loss/mean: ") == 12
    assert "stats" in (run / "hook_times.txt").read_text(encoding="utf-8")
    best = min(rows, key=lambda row: float(row["val/loss"]))
    (file,) = run.glob("best_loss_epoch_*.pth")
    assert file.name == f"best_loss_epoch_{best['epoch']}.pth"
    assert torch.load(file, weights_only=True)["progress"]["epoch"] == int(best["epoch"])


def test_the_order_that_the_document_warns_of_is_rejected(tmp_path):
    config = load(CONFIG, [f"run_dir={tmp_path / 'run'}"])
    hooks = config.tree["hooks"]
    config.tree["hooks"] = {"log": hooks["log"], "stats": hooks["stats"]}
    message = r"config.yaml:\d+: hooks.log: .*'log' reads .* before 'stats', its only writer"
    with pytest.raises(ConfigError, match=message):
        build(config).check()


def test_ctrl_c_ends_it_in_order(tmp_path):
    trainer = make(tmp_path / "run")

    @trainer.on("after_train_iter", every=30)
    def press(run):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as ended:
        trainer.train()
    assert ended.value.outcome.exit_code == 130
    again = make(tmp_path / "run", "resume=true", "hooks.stop.epochs=3")
    assert again.train().reason == "3 epochs are done"
    epochs = [row["epoch"] for row in csv_rows(tmp_path / "run" / "metrics.csv")]
    assert epochs == ["1", "2", "3"]
