import logging
import re

import pytest
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.hooks import LogMetrics, RecordTimes, ShowProgress, WriteTo
from hookloop.writers.base import Writer


def log_of(directory):
    return (directory / "run.log").read_text(encoding="utf-8")


def test_the_log_has_loss_rate_times_remaining_time_and_memory(tmp_path):
    hooks = [RecordTimes(), LogMetrics(every=2)]
    make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=2).train()
    text = log_of(tmp_path)
    line = (
        r"epoch 1/2  iter 2/6  loss [\d.]+  lr 0\.1  [\d.]+ ms/iter \(data [\d.e-]+\)  "
        r"eta \d:\d\d:\d\d  memory \d+ MB"
    )
    assert re.search(line, text)
    assert "67 parameters" in text and "epoch 2  iter 6  val: loss" in text
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  completed after iteration 6$", text, re.M)


def test_failures_and_warnings_are_in_the_log(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("boom")

    class Broken(Writer):
        name = "broken"

        def write(self, records):
            raise OSError("disk full")

    hooks = {"write": WriteTo(Broken(), every=1), "fail": Fail(), "log": LogMetrics()}
    with pytest.raises(RuntimeError, match="boom"):
        make_classifier(hooks=hooks, run_dir=tmp_path, setup={"config": {"a": 1}}).train()
    text = log_of(tmp_path)
    assert "RuntimeError: boom" in text and "Traceback" in text
    assert (
        "The writer 'broken' failed" in text
        and "failed (RuntimeError: boom; without the hook write" in text
    )


def test_it_prints_only_if_nothing_else_shows_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    make_classifier(hooks=[LogMetrics(every=1)], run_dir=tmp_path / "a").train()
    assert "iter 2/3" in capsys.readouterr().out
    hooks = [LogMetrics(every=1), ShowProgress()]
    make_classifier(hooks=hooks, run_dir=tmp_path / "b").train()
    assert "memory" not in capsys.readouterr().out
    assert logging.getLogger("hookloop").handlers == []


def test_its_lines_can_be_kept_out_of_the_file(tmp_path):
    make_classifier(hooks=[LogMetrics(every=1, file=False)], run_dir=tmp_path).train()
    text = log_of(tmp_path)
    assert "memory" not in text and "val:" not in text
    assert text.count("completed after iteration 3") == 1


def test_a_hook_that_was_switched_off_restores_the_logger(tmp_path):
    class Fails(LogMetrics):
        def after_train_iter(self, run):
            raise ValueError("cannot")

    logger = logging.getLogger("hookloop")
    before = (logger.level, list(logger.handlers))
    make_classifier(hooks=[Fails()], run_dir=tmp_path).train()
    assert (logger.level, logger.handlers) == before
