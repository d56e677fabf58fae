"""Files on the local disk."""

import pytest

from hookloop_mmengine import fileio
from hookloop_mmengine.fileio.backends import LocalBackend


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.json", ".hidden", "sub/c.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_files_are_copied_and_removed(folder):
    disk = LocalBackend()
    assert (disk.name, disk.allow_symlink) == ("LocalBackend", True)
    assert str(disk.copyfile(folder / "b.txt", folder / "d.txt")).endswith("d.txt")
    with disk.get_local_path(folder / "b.txt") as path:
        assert path == folder / "b.txt"
    disk.remove(folder / "d.txt")
    assert not disk.exists(folder / "d.txt")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        disk.remove(folder / "d.txt")
    with pytest.raises(IsADirectoryError, match="should be a file"):
        disk.remove(folder / "sub")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["a.json", "b.txt", "sub"]),
        ({"list_dir": False}, ["a.json", "b.txt"]),
        ({"list_file": False}, ["sub"]),
        ({"recursive": True}, ["a.json", "b.txt", "sub", "sub/c.txt"]),
        ({"list_dir": False, "suffix": ".txt", "recursive": True}, ["b.txt", "sub/c.txt"]),
        ({"list_dir": False, "suffix": (".json", ".md")}, ["a.json"]),
    ],
)
def test_what_is_in_a_directory(folder, options, wanted):
    assert list(LocalBackend().list_dir_or_file(folder, **options)) == wanted


def test_a_suffix_is_for_files(folder):
    with pytest.raises(TypeError, match="should be None when `list_dir`"):
        LocalBackend().list_dir_or_file(folder, suffix=".txt")
    with pytest.raises(TypeError, match="a string or tuple of strings"):
        LocalBackend().list_dir_or_file(folder, list_dir=False, suffix=[".txt"])


def test_paths_are_joined_as_text():
    assert LocalBackend().join_path("./a/", "b") == "./a/b"


def test_another_backend_is_rejected():
    with pytest.raises(ValueError, match="'zebra' is not offered, only files on the local disk"):
        fileio.get("a", {"backend": "zebra"})
    with pytest.raises(ValueError, match="'https' is not offered.*fsspec.*--graft mmengine"):
        fileio.get("https://example.org/a")
    with pytest.raises(ValueError, match="'s3' is not offered"):
        fileio.FileClient.infer_client(uri="cluster:s3://a/b")
