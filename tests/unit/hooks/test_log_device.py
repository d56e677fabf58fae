import json
import sys
import threading

import psutil
import pytest
from tests.tiny import make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import LogDevice, WriteCSV, WriteMetrics, WriteTensorBoard


def test_the_readings_reach_every_writer_and_not_the_store(tmp_path):
    hooks = [LogDevice(), WriteMetrics(every=1), WriteTensorBoard(every=1), WriteCSV()]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    outcome = trainer.train()
    assert outcome.status == "completed" and not outcome.disabled
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    rows = [row for line in lines if "device/cpu_percent" in (row := json.loads(line))]
    assert len(rows) >= 1
    assert rows[-1]["iter"] == 3 and rows[-1]["device/process_rss"] > 0
    assert not [name for name in trainer.run.metrics.names() if name.startswith("device/")]


def test_nothing_is_read_in_the_thread_of_the_training(tmp_path, monkeypatch):
    threads = set()
    plain = psutil.virtual_memory

    def watched():
        threads.add(threading.current_thread().name)
        return plain()

    monkeypatch.setattr(psutil, "virtual_memory", watched)
    make_trainer(hooks=[LogDevice()], run_dir=tmp_path).train()
    assert threads == {"sample"}


def test_it_acts_at_no_point_of_an_iteration():
    points = {name for name in vars(LogDevice) if name.startswith(("before_", "after_"))}
    assert points == {"before_run", "after_run"}


def test_a_failure_is_said_and_the_run_continues(tmp_path, monkeypatch, caplog):
    def fail():
        raise OSError("no counters")

    def break_it(run):
        monkeypatch.setattr(psutil, "virtual_memory", fail)

    look, _ = record(["before_train"], break_it)
    outcome = make_trainer(hooks=[LogDevice(), look], run_dir=tmp_path).train()
    assert outcome.status == "completed"
    assert [one.hook for one in outcome.disabled] == ["log_device"]
    assert "no counters" in caplog.text


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(HookError, match=r"hookloop\[device\]"):
        LogDevice()


def test_an_interval_in_iterations_is_rejected():
    with pytest.raises(HookError, match="an interval in time"):
        LogDevice(every=50)


def test_the_thread_ends_with_a_run_that_fails(tmp_path):
    def step(run, batch):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_trainer(step=step, hooks=[LogDevice()], run_dir=tmp_path).train()
    assert "sample" not in {thread.name for thread in threading.enumerate()}
