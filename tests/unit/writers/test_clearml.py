import math
import os
import signal

import pytest
from tests.ranks import on_ranks
from tests.readback import clearml_points

from hookloop.errors import HookError
from hookloop.writers.clearml import MASTER, ClearML, check_server, keeping_signals, read_steps

pytestmark = pytest.mark.slow  # ClearML takes seconds to open and close a task.


def write(directory, values, run_id=None):
    writer = ClearML(directory, "p", run_id=run_id, mode="offline", name="one")
    held = writer.held()
    for step, value in values:
        writer.write_scalar("train/loss", value, step)
    writer.close()
    return writer.run_id, held


def test_a_continued_task_knows_what_it_holds_and_counts_on(tmp_path):
    key, held = write(tmp_path, [(1, 0.5), (7, 0.25), (8, math.nan)])
    assert held == {}
    again, held = write(tmp_path, [(8, 0.1)], run_id=key)
    assert again == key and held == {"train/loss": 7}
    assert clearml_points(tmp_path, "train/loss") == [(1, 0.5), (7, 0.25), (8, 0.1)]
    assert "CLEARML_CACHE_DIR" not in os.environ


def test_signals_stay_those_of_the_run(tmp_path):
    def handle(number, frame):
        pass

    was = signal.signal(signal.SIGTERM, handle)
    try:
        write(tmp_path, [(1, 0.5)])
        assert signal.getsignal(signal.SIGTERM) is handle
        with keeping_signals():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, was)


def test_a_second_task_is_rejected(tmp_path):
    writer = ClearML(tmp_path, "p", mode="offline", name="one")
    with pytest.raises(HookError, match="'one'"):
        ClearML(tmp_path, "p", mode="offline", name="two")
    writer.close()


def test_a_process_started_after_a_task_has_its_own(tmp_path):
    key, _ = write(tmp_path / "here", [(1, 0.25)])
    [(other, _)] = on_ranks(write, 1, tmp_path / "there", [(1, 0.5)])
    assert other != key
    assert clearml_points(tmp_path / "there", "train/loss") == [(1, 0.5)]


@pytest.mark.parametrize("task", ["", "aaaa"])
def test_a_task_of_the_process_that_started_this_one_is_not_joined(tmp_path, monkeypatch, task):
    for name in MASTER:
        monkeypatch.setenv(name, f"1:{task}")
    key, _ = write(tmp_path, [(1, 0.5)])
    assert isinstance(key, str) and key != task
    assert clearml_points(tmp_path, "train/loss") == [(1, 0.5)]
    assert all(os.environ[name] == f"1:{task}" for name in MASTER)


def test_a_task_that_cannot_start_leaves_the_environment_as_it_was(tmp_path, monkeypatch):
    for name in MASTER:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TypeError, match="not_an_argument"):
        ClearML(tmp_path, "p", mode="offline", not_an_argument=1)
    assert not {"CLEARML_CACHE_DIR", *MASTER} & set(os.environ)


def test_a_damaged_file_counts_as_far_as_it_can_be_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    good = '[{"type": "training_stats_scalar", "metric": "lr", "variant": "lr", "iter": 3}]'
    path.write_text(f'{good}\n[{{"type": "other"}}]\n7\n[{{"ty')
    assert list(read_steps(path)) == [("lr", 3)]
    assert list(read_steps(tmp_path / "missing.jsonl")) == []


def test_an_online_task_needs_credentials(monkeypatch):
    monkeypatch.delenv("CLEARML_API_ACCESS_KEY", raising=False)
    with pytest.raises(HookError, match="clearml-init"):
        check_server("online")
    check_server("offline")
    monkeypatch.setenv("CLEARML_API_ACCESS_KEY", "key")
    check_server("online")


def test_it_lists_what_is_installed_and_parses_no_repository(tmp_path, monkeypatch):
    from clearml.backend_interface.task.repo.scriptinfo import ScriptRequirements

    parsed = []
    monkeypatch.setattr(
        ScriptRequirements, "get_requirements", lambda self, **options: parsed.append(options)
    )
    write(tmp_path, [(1, 0.5)])
    assert not parsed
    assert "\ntorch==" in (tmp_path / "requirements.txt").read_text(encoding="utf-8")
