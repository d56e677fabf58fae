"""ClassyVision's log and table of predictions."""

import logging

import pytest
import torch
from tests.vissl.phases import train

from hookloop_dialects.vissl.classy_vision import hooks as classy


def test_the_log_of_classy_names_phase_and_meters(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "classy_vision"):
        train(tmp_path, classy.LossLrMeterLoggingHook(log_freq=2), max_epochs=2)
    kinds = [message.split(",")[0:2] for message in caplog.messages]
    assert [kind[0].split(":")[0] for kind in kinds] == [
        "Approximate meters", "Synced meters", "Synced meters",
    ] * 2  # fmt: skip
    assert "train phase: 0" in caplog.messages[0] and "test phase: 1" in caplog.messages[-1]


def test_predictions_are_appended_in_test_phases(tmp_path):
    def step(run, batch):
        output = run.model(batch["input"])
        return {"loss": output.square().mean(), "output": output}

    batch = {"input": torch.ones(2, 4), "id": torch.tensor([7, 8]), "target": torch.tensor([1, 0])}
    (tmp_path / "run").mkdir()
    model = torch.nn.Linear(4, 2)
    train(
        tmp_path,
        classy.OutputCSVHook(str(tmp_path / "run")),
        model=model,
        train_data=[batch],
        val_data=[batch],
        step=step,
        max_epochs=1,
    )
    rows = [
        line.split("\t") for line in (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    ]
    assert [row[0] for row in rows] == ["sample_id", "7", "8"]
    assert [row[2].strip() for row in rows] == ["target", "1", "0"]


def test_lines_within_a_phase_are_off_by_default(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "classy_vision"):
        train(tmp_path, classy.LossLrMeterLoggingHook(), max_epochs=1)
    assert [line.split(":")[0] for line in caplog.messages] == ["Synced meters"] * 2
    assert "100% done" in caplog.messages[0]
    assert "lr: 0.05" in caplog.messages[0] and "lr:" not in caplog.messages[1]


def test_a_frequency_below_1_is_rejected():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        classy.LossLrMeterLoggingHook(0)


def test_a_batch_without_ids_is_an_error_with_advice(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(KeyError, match="has no 'id': set id_key="):
        train(tmp_path, classy.OutputCSVHook(str(tmp_path / "run")), max_epochs=1)


def test_scores_and_one_hot_targets_are_written_as_classes(tmp_path):
    def step(run, batch):
        output = run.model(batch["input"]) * 0 + batch["scores"]
        return {"loss": output.square().mean(), "output": output}

    batch = {
        "input": torch.ones(2, 4),
        "scores": torch.tensor([[0.0, 5.0], [5.0, 0.0]]),
        "name": ["a", "b"],
        "target": torch.tensor([[1, 0], [0, 1]]),
    }
    (tmp_path / "run").mkdir()
    hook = classy.OutputCSVHook(str(tmp_path / "run"), id_key="name", delimiter=",")
    parts = {"model": torch.nn.Linear(4, 2), "train_data": [batch], "val_data": [batch]}
    train(tmp_path, hook, step=step, max_epochs=1, **parts)
    rows = (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    assert rows == ["sample_id,prediction,target", "a,1,0", "b,0,1"]
