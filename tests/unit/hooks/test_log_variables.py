import logging

import pytest
from tests.tiny import make_classifier

from hookloop.errors import ArgumentError, MetricError
from hookloop.hooks import ComputeStats, LogMetrics, LogVariables


def test_every_number_of_the_epoch_is_logged_when_it_is_known(caplog):
    with caplog.at_level(logging.INFO, "hookloop"):
        trainer = make_classifier(hooks=[ComputeStats({"loss": ["max"]}), LogVariables()])
        trainer.train()
        trainer.test()
    names = [line.split(":")[0].strip() for line in caplog.messages]
    assert names == [
        "epoch 1, iteration 3", "train/loss", "train/loss/max",
        "epoch 1, iteration 3", "val/loss", "val/accuracy", "val/loss/max",
        "epoch 1, iteration 3", "test/loss", "test/accuracy", "test/loss/max",
    ]  # fmt: skip


def test_only_what_was_named_is_logged(caplog):
    with caplog.at_level(logging.INFO, "hookloop"):
        make_classifier(hooks=[LogVariables(["val/accuracy"])]).train()
    assert [line.split(":")[0].strip() for line in caplog.messages] == [
        "epoch 1, iteration 3",
        "val/accuracy",
    ]


def test_it_is_printed_where_nobody_set_logging_up(capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    make_classifier(hooks=[LogVariables(["val/accuracy"])]).train()
    assert "val/accuracy: " in capsys.readouterr().out
    assert logging.getLogger("hookloop").handlers == []
    assert logging.getLogger("hookloop").level == logging.NOTSET


def test_a_variable_that_nothing_produces_names_those_that_exist():
    with pytest.raises(MetricError, match="'val/accuracy'"):
        make_classifier(hooks=[LogVariables(["val/acuracy"])]).check()
    with pytest.raises(ArgumentError, match="must be a list of names"):
        LogVariables("val/accuracy")


def test_only_its_own_lines_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    hooks = [LogVariables(["val/loss"]), LogMetrics(every=1, console=False)]
    make_classifier(hooks=hooks, run_dir=tmp_path).train()
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip().split(":")[0] for line in lines] == ["epoch 1, iteration 3", "val/loss"]
    assert "    val/loss: " in (tmp_path / "run.log").read_text()
