"""What MMEngine's hooks add to metrics and hub reaches native hooks and writers."""

import json

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop import Hook as Native
from hookloop.hooks import SaveCheckpoint, StopOnPlateau, WriteMetrics
from hookloop_mmengine.hooks import Hook


class Add(Hook):
    """Adds to the metrics of a validation."""

    writes = ("val/score",)

    def after_val_epoch(self, runner, metrics=None):
        metrics["score"] = float(runner.epoch)
        metrics["list"] = [1, 2]


class See(Hook):
    def __init__(self):
        self.seen = []

    def after_val_epoch(self, runner, metrics=None):
        self.seen.append(dict(metrics))


class Update(Hook):
    """Adds to the hub as hooks of projects do."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        hub = runner.message_hub
        hub.update_scalar("train/mine", torch.tensor(float(batch_idx)))
        hub.update_scalars({"train/loss": 100.0, "train/size": 100.0, "train/lr": 1.0, "note": 2})

    def after_val_epoch(self, runner, metrics=None):
        runner.message_hub.update_scalar("val/own", 0.25)
        runner.message_hub.update_scalar("val/loss", 100.0)


class Size(Native):
    writes = ("train/size",)

    def after_train_iter(self, run):
        run.metrics.put("train/size", 1)


def train(tmp_path, *hooks, **options):
    defaults = {"run_dir": tmp_path / "run", "val_data": make_data(8), "max_epochs": 3}
    trainer = make_trainer(hooks=list(hooks), **(defaults | options))
    trainer.train()
    return trainer


def test_added_metrics_are_seen_by_the_next_hooks(tmp_path):
    see = See()
    stop = StopOnPlateau("val/score", mode="min", patience=2)
    trainer = train(
        tmp_path, Add(), see, stop, SaveCheckpoint(best="val/score", rule="greater"), max_epochs=9
    )
    assert trainer.run.progress.epoch == 3
    assert [metrics["score"] for metrics in see.seen] == [1, 2, 3]
    assert "list" not in trainer.run.metrics.all_latest()
    assert [path.name for path in (tmp_path / "run").glob("best_*")] == ["best_score_epoch_3.pth"]


@pytest.mark.parametrize("resumed", [False, True])
def test_what_the_hub_gets_is_recorded_once(tmp_path, resumed):
    hooks = [Size(), Update(), WriteMetrics(every=1), SaveCheckpoint()]
    if resumed:
        train(tmp_path, Size(), Update(), WriteMetrics(every=1), SaveCheckpoint(), max_epochs=1)
    trainer = train(tmp_path, *hooks, resume=resumed)
    latest = trainer.run.metrics.all_latest()
    assert latest["train/mine"] == 2 and latest["val/own"] == 0.25
    # These are metrics of the run itself.
    assert latest["train/loss"] < 100 > latest["val/loss"] and latest["train/size"] == 1
    assert not {"train/lr", "note"} & {*latest}
    text = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    assert [one["train/mine"] for one in records if "train/mine" in one] == [0, 1, 2] * 3
