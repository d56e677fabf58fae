"""Files and directories."""

from pathlib import Path

import pytest

from hookloop_mmengine import utils
from hookloop_mmengine.utils.path import find_vcs_root


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with utils.fopen(str(tmp_path / "a.txt")) as file:
        assert file.read() == "x"
    utils.check_file_exist(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match='no ".*b.txt" here'):
        utils.check_file_exist(tmp_path / "b.txt", 'no "{}" here')
    with pytest.raises(ValueError, match="a string or a Path"):
        utils.fopen(3)
    assert utils.is_filepath(Path("a"))
    assert not utils.is_filepath(3)


def test_a_link_replaces_an_older_one(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).touch()
        utils.symlink(tmp_path / name, tmp_path / "link")
    assert (tmp_path / "link").resolve().name == "b"
    with pytest.raises(FileExistsError):
        utils.symlink(tmp_path / "a", tmp_path / "link", overwrite=False)


def test_the_root_of_a_project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").touch()
    assert find_vcs_root(tmp_path / "a" / "b" / "c.py") == str(tmp_path)
    assert find_vcs_root(tmp_path, markers=(".no-such-marker",)) is None


def test_absolute_paths():
    assert all(utils.is_abs(path) for path in ("/a", "http://a", "https://a", "s3://a"))
    assert not utils.is_abs("a")


def test_a_directory_is_scanned_at_once(tmp_path):
    with pytest.raises(TypeError, match='"dir_path" must be a string or Path'):
        utils.scandir(3)
    with pytest.raises(TypeError, match='"suffix" must be a string or tuple'):
        utils.scandir(tmp_path, suffix=3)
