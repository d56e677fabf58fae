"""Nothing outside of a run directory is ever opened."""

import os

import pytest

from hookloop_board.files import is_inside, list_inside, open_inside, read_inside, stamp_of


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "run"
    (home / "images" / "a").mkdir(parents=True)
    (home / "images" / "a" / "1.png").write_bytes(b"inside")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "1.png").write_bytes(b"outside")
    return home


def test_a_file_of_the_run_is_read(home):
    assert read_inside(home, "images/a/1.png", 100) == b"inside"
    with pytest.raises(ValueError, match="larger than 3 bytes"):
        read_inside(home, "images/a/1.png", 3)


@pytest.mark.parametrize(
    "path",
    ["", "..", "../secret/1.png", "images/../../secret/1.png", "/etc/passwd", "a\0b", "a\\..\\b"],
)
def test_a_path_that_leads_elsewhere_is_rejected(home, path):
    assert not is_inside(path)
    with pytest.raises(OSError, match="leads out"), open_inside(home, path):
        pass


def test_links_are_followed_neither_as_files_nor_as_folders(home, tmp_path):
    (home / "images" / "b").symlink_to(tmp_path / "secret")
    (home / "images" / "a" / "2.png").symlink_to(tmp_path / "secret" / "1.png")
    (home / "linked").symlink_to(tmp_path / "secret")
    for path in ("images/b/1.png", "images/a/2.png", "linked/1.png"):
        with (
            pytest.raises(OSError, match="Not a directory|symbolic link"),
            open_inside(home, path),
        ):
            pass
    assert [name for name, _ in list_inside(home, "images")] == ["images/a/1.png"]
    assert not list(list_inside(home, "linked"))
    assert stamp_of(home / "images" / "a" / "2.png") is None


def test_a_pipe_does_not_block(home):
    os.mkfifo(home / "pipe")
    with pytest.raises(OSError, match="not a file"), open_inside(home, "pipe"):
        pass
    assert stamp_of(home / "pipe") is None


def test_the_number_of_entries_is_limited(home, monkeypatch):
    monkeypatch.setattr("hookloop_board.files.MOST_ENTRIES", 3)
    for number in range(10):
        (home / "images" / f"{number}.png").touch()
    assert len(list(list_inside(home, "images"))) <= 3


def test_a_stamp_changes_with_the_file(home):
    before = stamp_of(home / "images" / "a" / "1.png")
    (home / "images" / "a" / "1.png").write_bytes(b"longer than before")
    assert before != stamp_of(home / "images" / "a" / "1.png")
    assert stamp_of(home / "missing") is None
