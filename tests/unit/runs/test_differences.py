import json
import zipfile

import pytest

from hookloop.runs.differences import (
    compare_metrics,
    compare_runs,
    is_equal,
    read_environment,
    read_source,
)
from hookloop.runs.layout import RunDir
from hookloop.runs.series import Column


def make(path, lr=0.1, losses=(3.0, 2.0, 1.0), version="1.0", source="a = 1", host="one"):
    run = RunDir.create(path)
    run.write_config({"run_dir": str(path), "optimizer": {"lr": lr}})
    run.write_summary({"status": "completed", "iter": len(losses), "epoch": 1})
    lines = [
        json.dumps({"iter": number, "train/loss": loss, "train/iter_time": number * loss})
        for number, loss in enumerate(losses, 1)
    ]
    run.metrics_file.write_text("\n".join(lines) + "\n")
    start = {"packages": [f"numpy=={version}", "torch==2"], "command": str(path), "time": str(path)}
    environment = {"starts": [{"host": "before"}, {"host": host, **start}]}
    (path / "environment.json").write_text(json.dumps(environment))
    with zipfile.ZipFile(path / "source.zip", "w") as archive:
        archive.writestr("train.py", source)
    (path / "git.txt").write_text("abc123 2026-01-01 subject\n M train.py\n")
    return run


def test_the_same_training_twice_is_equal(tmp_path):
    found = compare_runs(make(tmp_path / "a"), make(tmp_path / "b"))
    assert found["environment"].keys() == {"command"}  # It is shown, and does not count.
    assert is_equal(found)


def test_every_kind_of_difference_is_found(tmp_path):
    one = make(tmp_path / "a")
    other = make(tmp_path / "b", 0.2, (3.0, 2.5, 1.1, 0.5), "1.1", "a = 2", "two")
    (other.path / "git.txt").write_text("def456 2026-01-01 subject\n")
    found = compare_runs(one, other)
    assert found["run"] == {"iters": [3, 4]}
    assert found["config"] == {"optimizer.lr": [0.1, 0.2]}
    assert found["environment"].keys() == {"host", "packages.numpy", "command"}
    assert found["environment"]["packages.numpy"] == ["1.0", "1.1"]
    assert found["source"].keys() == {"git commit", "train.py"}
    metrics = found["metrics"]
    first = {"metric": "train/loss", "iter": 2, "values": [2.0, 2.5]}
    assert metrics["first_difference"] == first
    loss = metrics["metrics"]["train/loss"]
    assert loss["last"] == {"iter": 3, "values": [1.0, 1.1]}
    assert loss["best"] == {"values": [1.0, 0.5]}
    assert (loss["farthest"]["iter"], loss["farthest"]["difference"]) == (2, 0.5)
    assert metrics["metrics"].keys() == {"train/loss"}  # Times always differ.
    assert not is_equal(found)


def test_nan_is_equal_to_nan_and_far_from_numbers():
    nan = float("nan")
    same = compare_metrics({"a": Column([1], [nan])}, {"a": Column([1], [nan])})
    assert same["first_difference"] is None
    apart = compare_metrics({"a": Column([1], [nan])}, {"a": Column([1], [1.0]), "b": Column()})
    assert apart["metrics"]["a"]["farthest"]["difference"] == float("inf")
    assert apart["only"] == {"second": ["b"]}
    assert compare_metrics({}, {})["first_difference"] is None


def test_a_difference_in_the_very_first_record_is_one():
    found = compare_metrics({"a": Column([0], [1.0])}, {"a": Column([0], [2.0])})
    assert found["metrics"]["a"]["farthest"]["difference"] == 1.0


def test_damaged_files_are_named(tmp_path):
    run = make(tmp_path / "a")
    (run.path / "environment.json").write_text("[]")
    with pytest.raises(ValueError, match="is not an environment"):
        read_environment(run)
    (run.path / "source.zip").write_text("no zip")
    with pytest.raises(ValueError, match="is damaged"):
        read_source(run)
