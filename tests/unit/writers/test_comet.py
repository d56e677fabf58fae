import zipfile

import pytest
from tests.readback import comet_points

from hookloop.errors import HookError
from hookloop.writers.comet import Comet, check_key, newest_steps


def write(directory, values, run_id=None):
    writer = Comet(directory, "p", run_id=run_id, mode="offline", name="one")
    for step, value in values:
        writer.write_scalar("train/loss", value, step)
    writer.write_config({"optimizer": {"lr": 0.1}})
    held = writer.held()
    writer.close()
    return writer.run_id, held


def test_a_continued_experiment_knows_what_it_holds(tmp_path):
    key, held = write(tmp_path, [(1, 0.5), (7, 0.25)])
    assert held == {}
    again, held = write(tmp_path, [(8, 0.1)], run_id=key)
    assert again == key and held["train/loss"] == 7
    assert newest_steps(tmp_path, key)["train/loss"] == 8
    assert comet_points(tmp_path, "train/loss") == [(1, 0.5), (7, 0.25), (8, 0.1)]
    assert len(list(tmp_path.glob("*.zip"))) == 2


def test_damaged_archives_count_as_empty(tmp_path):
    (tmp_path / "key1.zip").write_bytes(b"not an archive")
    with zipfile.ZipFile(tmp_path / "key2.zip", "w") as archive:
        archive.writestr("messages.json", '{"type": "metric_msg", "payload": 3}\n"metric_msg"')
    assert newest_steps(tmp_path, "key") == {}


def test_nothing_is_printed(tmp_path, capfd, caplog):
    write(tmp_path, [(1, 0.5)])
    shown = capfd.readouterr()
    assert shown.out == "" and shown.err == "" and not caplog.text


def test_an_online_experiment_needs_a_key(monkeypatch, tmp_path):
    monkeypatch.delenv("COMET_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COMET_CONFIG", str(tmp_path / "none"))
    with pytest.raises(HookError, match="COMET_API_KEY"):
        check_key("online")
    check_key("offline")
    monkeypatch.setenv("COMET_API_KEY", "0123456789")
    check_key("online")
