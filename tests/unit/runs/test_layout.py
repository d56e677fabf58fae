import math
import re
from pathlib import Path

import pytest
import yaml
from tests.names import epoch_file

from hookloop.errors import HookloopError, RunExistsError
from hookloop.runs.interventions import read_interventions
from hookloop.runs.layout import Pointer, RunDir, write_text


def test_a_run_without_a_path_is_named_after_the_time(tmp_path: Path) -> None:
    run = RunDir.create(root=tmp_path / "runs")
    assert run.path.parent == tmp_path / "runs"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?", run.path.name)


def test_runs_started_in_one_second_get_directories_of_their_own(tmp_path: Path) -> None:
    runs = [RunDir.create(root=tmp_path) for _ in range(5)]
    assert len({run.path for run in runs}) == 5
    assert all(run.path.is_dir() for run in runs)


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl", epoch_file(1)])
def test_a_directory_that_holds_a_run_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(RunExistsError, match=r"\(--resume"):
        RunDir.create(tmp_path)
    assert RunDir.open(tmp_path).path == tmp_path


def test_a_directory_with_other_files_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert RunDir.create(tmp_path).path == tmp_path


def test_a_directory_may_be_given_as_text(tmp_path: Path) -> None:
    assert RunDir(str(tmp_path)) == RunDir(tmp_path)
    assert [*read_interventions(RunDir(str(tmp_path)))] == []


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunExistsError, match="is a file"):
        RunDir.create(tmp_path / "file")


def test_missing_parents_are_made(tmp_path: Path) -> None:
    assert RunDir.create(tmp_path / "a" / "b").path.is_dir()


def test_the_config_is_written_as_plain_yaml(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    run.write_config({"max_epochs": 3, "optimizer": {"type": "SGD", "lr": 1e-3}})
    assert yaml.safe_load(run.config_file.read_text()) == {
        "max_epochs": 3,
        "optimizer": {"type": "SGD", "lr": 0.001},
    }
    assert run.config_file.read_text().startswith("max_epochs")


def test_the_summary_reads_back_as_written(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    assert run.read_summary() == {}
    run.write_summary({"status": "failed", "metrics": {"train/loss": math.inf}})
    assert run.read_summary() == {"status": "failed", "metrics": {"train/loss": math.inf}}


def test_metrics_read_back_as_numbers_without_the_line_being_written(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    assert list(run.read_metrics()) == []
    run.metrics_file.write_text(
        '{"iter": 1, "train/loss": 0.5}\n{"iter": 2, "train/loss": "-Infinity"}\n{"iter": 3, "tr'
    )
    assert list(run.read_metrics()) == [
        {"iter": 1, "train/loss": 0.5},
        {"iter": 2, "train/loss": -math.inf},
    ]


def test_the_last_checkpoint_is_found_by_its_name(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path)
    assert run.last_checkpoint is None
    run.last_checkpoint_file.write_text("epoch_2.pth\n")
    assert run.last_checkpoint == tmp_path / epoch_file(2)
    run.last_checkpoint_file.write_text("s3://bucket/run/epoch_2.pth\n")
    assert run.last_checkpoint is None
    assert run.last_pointer == Pointer(epoch_file(2), "s3://bucket/run")


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_time_can_stand_anywhere_in_the_name_of_a_run(tmp_path: Path) -> None:
    first, second = (RunDir.create(tmp_path / "{time}_digits") for _ in range(2))
    assert re.fullmatch(r"\d{4}-.*_digits(-\d+)?", first.path.name)
    assert first.path != second.path


@pytest.mark.parametrize("name", ["file/run", "file/runs/{time}"])
def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HookloopError, match="file/runs?'"):
        RunDir.create(tmp_path / name)


def test_a_directory_that_cannot_be_written_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(HookloopError, match="cannot be written: change its permissions"):
        RunDir.create(tmp_path / "run")
