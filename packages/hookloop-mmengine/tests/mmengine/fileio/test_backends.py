"""Files on the local disk, and backends of projects."""

import pytest

from hookloop_mmengine import fileio
from hookloop_mmengine.fileio import backends
from hookloop_mmengine.fileio.backends import BaseStorageBackend, LocalBackend


class Memory(BaseStorageBackend):
    def __init__(self, greeting="hello"):
        self.greeting = greeting

    def get(self, filepath):
        return self.greeting.encode()

    def get_text(self, filepath, encoding="utf-8"):
        return self.greeting


@pytest.fixture
def memory():
    fileio.register_backend("memory", Memory, prefixes=["mem"])
    yield
    del backends.backends["memory"], backends.prefix_to_backends["mem"]


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
    disk.copytree_to_local(folder / "sub", folder / "copy")
    assert disk.get_text(folder / "copy" / "c.txt") == "sub/c.txt"
    with disk.get_local_path(folder / "b.txt") as path:
        assert path == folder / "b.txt"
    disk.remove(folder / "d.txt")
    disk.rmtree(folder / "copy")
    assert not disk.exists(folder / "d.txt")
    assert not disk.exists(folder / "copy")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        disk.remove(folder / "d.txt")
    with pytest.raises(IsADirectoryError, match="should be a file"):
        disk.remove(folder / "sub")


def test_a_link_or_a_copy(folder):
    disk = LocalBackend()
    assert disk.copy_if_symlink_fails(folder / "b.txt", folder / "link")
    assert (folder / "link").is_symlink()
    # A path that exists cannot become a link.
    (folder / "taken").touch()
    assert not disk.copy_if_symlink_fails(folder / "b.txt", folder / "taken")
    assert (folder / "taken").read_text() == "b.txt"


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
    assert list(fileio.list_dir_or_file(folder, **options)) == wanted


def test_a_suffix_is_for_files(folder):
    with pytest.raises(TypeError, match="should be None when `list_dir`"):
        LocalBackend().list_dir_or_file(folder, suffix=".txt")
    with pytest.raises(TypeError, match="a string or tuple of strings"):
        LocalBackend().list_dir_or_file(folder, list_dir=False, suffix=[".txt"])


def test_paths_are_joined_as_text():
    assert LocalBackend().join_path("./a/", "b") == "./a/b"


def test_a_backend_of_a_project(memory):
    assert fileio.get_text("mem://anything") == "hello"
    assert fileio.get("x", {"backend": "memory", "greeting": "hi"}) == b"hi"
    assert fileio.get_file_backend("c:mem://x").name == "Memory"
    assert not fileio.get_file_backend(backend_args={"backend": "memory"}).allow_symlink
    with pytest.raises(ValueError, match="already registered"):
        fileio.register_backend("memory", Memory)
    fileio.register_backend("memory", force=True)(Memory)
    with pytest.raises(TypeError, match="is not a subclass of BaseStorageBackend"):
        fileio.register_backend("other", dict)
    with pytest.raises(TypeError, match="name should be a string"):
        fileio.register_backend(3, Memory)


def test_an_unknown_backend_is_rejected():
    with pytest.raises(ValueError, match="Backend zebra is not supported. There are local"):
        fileio.get("a", {"backend": "zebra"})
    with pytest.raises(ValueError, match="'https' is not offered.*fsspec.*--graft mmengine"):
        fileio.get("https://example.org/a")
