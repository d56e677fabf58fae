"""Links in a directory of somebody else are never followed when something is written."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hookloop.errors import LinkError
from hookloop.runs import files
from hookloop.runs.lock import LOCK, RunLock
from hookloop.runs.log import LogFile
from hookloop.runs.run_log import RunLog
from hookloop.writers.csv import Csv
from hookloop.writers.jsonl import JsonLines


def keep_log(path: Path) -> None:
    with closing(RunLog()) as log:
        log.keep(path)


OPENED: dict[str, Callable[[Path], object]] = {
    "append": lambda path: files.append(path, "more"),
    "jsonl": JsonLines,
    "csv": Csv,
    "log": LogFile,
    "run log": keep_log,
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text("precious")
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.mark.parametrize("name", OPENED)
def test_a_link_is_rejected_where_a_file_is_continued(name: str, home: Path, victim: Path) -> None:
    (home / "file").symlink_to(victim)
    with pytest.raises(LinkError, match=r"file' is a symbolic link, which is not followed"):
        OPENED[name](home / "file")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", OPENED)
def test_a_dangling_link_makes_nothing(name: str, home: Path, tmp_path: Path) -> None:
    (home / "file").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LinkError):
        OPENED[name](home / "file")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", OPENED)
def test_a_pipe_is_rejected_and_not_waited_for(name: str, home: Path) -> None:
    os.mkfifo(home / "file")
    with pytest.raises(LinkError, match="is not a file"):
        OPENED[name](home / "file")


def test_without_the_flag_of_the_system_a_link_is_found_all_the_same(
    home: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_NO_FOLLOW", 0)
    monkeypatch.setattr(files, "_NO_WAIT", 0)
    (home / "file").symlink_to(victim)
    with pytest.raises(LinkError):
        files.append(home / "file", "more")
    assert victim.read_text() == "precious"


def test_a_file_with_two_names_is_copied_before_it_grows(home: Path, victim: Path) -> None:
    os.link(victim, home / "file")
    files.append(home / "file", " and more")
    assert (home / "file").read_text() == "precious and more"
    assert victim.read_text() == "precious"


def test_writing_replaces_a_link(home: Path, victim: Path) -> None:
    (home / "file").symlink_to(victim)
    files.write_text(home / "file", "new")
    assert (home / "file").read_text() == "new"
    assert victim.read_text() == "precious"
    assert [path.name for path in home.iterdir()] == ["file"]


def test_a_lock_that_is_a_link_is_rejected(home: Path, victim: Path) -> None:
    (home / LOCK).symlink_to(victim)
    with pytest.raises(LinkError, match=r"\.lock' is a symbolic link"):
        RunLock(home).take()
    assert victim.read_text() == "precious"


def test_a_lock_with_two_names_is_given_up(home: Path, victim: Path) -> None:
    os.link(victim, home / LOCK)
    lock = RunLock(home)
    lock.take()
    assert victim.read_text() == "precious"
    assert (home / LOCK).read_text().startswith("process ")
    lock.give_back()
    assert not (home / LOCK).exists()


def test_a_folder_that_leads_out_is_rejected(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / "images").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkError, match=r"images' is a symbolic link"):
        files.make_folder(home / "images" / "val", home)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_directory_itself_may_be_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to(home)
    linked = tmp_path / "runs"
    files.make_folder(linked / "images", linked)
    files.append(linked / "run.log", "line\n")
    lock = RunLock(linked)
    lock.take()
    lock.give_back()
    assert (home / "run.log").read_text() == "line\n"


@pytest.mark.parametrize(("text", "fits"), [("short", True), ("long" * 5000, False)])
def test_a_file_is_written_over_in_the_room_that_it_has(tmp_path, text, fits):
    path = tmp_path / "summary.json"
    path.write_text("a longer text")
    assert files.overwrite(path, text.encode()) == fits
    assert path.read_text() == (text if fits else "a longer text")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_error_names_the_file(tmp_path):
    with (
        pytest.raises(OSError, match="No space left on device: '.*summary.json'"),
        files.naming(tmp_path / "summary.json"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"text")


def test_two_may_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    with files.drafted(path) as first:
        first.write_text("first")
        with files.drafted(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["file.txt"]
