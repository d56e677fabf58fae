"""`RecordEnvironment`: an entry for each start, and one line about what has changed."""

import json
import subprocess
from pathlib import Path

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.hooks import RecordEnvironment, SaveCheckpoint

FILE = Path("run/environment.json")


@pytest.fixture(autouse=True)
def in_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(epochs=1, git=False, **options):
    trainer = make_trainer(
        hooks=[RecordEnvironment(git=git), SaveCheckpoint("1 epoch")],
        run_dir="run",
        max_epochs=epochs,
        **options,
    )
    trainer.train()
    return json.loads(FILE.read_text())["starts"]


def test_every_start_is_an_entry(caplog):
    (start,) = train()
    assert start["torch"]["version"] == str(torch.__version__)
    assert start["threads"]["torch"] == torch.get_num_threads()
    assert (start["iter"], start["ranks"], start["directory"]) == (0, 1, "..")
    assert [one["iter"] for one in train(2, resume=True)] == [0, 3]
    assert "environment" not in caplog.text


def test_what_has_changed_is_one_line(caplog, monkeypatch):
    monkeypatch.setenv("OMP_SCHEDULE", "static")
    starts = train()
    starts[0]["torch"]["version"] = "1.0"
    starts[0]["packages"]["numpy"] = "0.1"
    FILE.write_text(json.dumps({"starts": starts}))
    monkeypatch.setenv("OMP_SCHEDULE", "dynamic")
    train(2, resume=True)
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith(
        "The environment has changed since the last start of this run: torch version: 1.0 -> "
    )
    assert "numpy: 0.1 -> " in line
    assert line.endswith("OMP_SCHEDULE: static -> dynamic")


def test_the_commit_is_kept_even_if_git_is_slow(tmp_path, monkeypatch):
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *command], check=True)
    monkeypatch.setattr("hookloop.hooks.measuring.record_environment.PATIENCE", 0.0)
    monkeypatch.setattr("hookloop.hooks.measuring.record_environment.LAST_PATIENCE", 30.0)
    (start,) = train(git=True)
    assert len(start["git"]["commit"]) == 40
    assert start["git"]["dirty"] is False


def test_a_training_goes_on_if_it_cannot_be_written(tmp_path, caplog):
    (tmp_path / "run" / "environment.json").mkdir(parents=True)
    trainer = make_trainer(hooks=[RecordEnvironment(git=False)], run_dir="run")
    assert trainer.train().status == "completed"
    assert "environment.json" in caplog.text


def test_a_link_is_replaced_and_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "environment.json").symlink_to(victim)
    train()
    assert victim.read_text() == "precious"
