import errno
import os
import shutil

import pytest

from hookloop.checkpoint.store.storage import LocalStorage, RemoteStorage, open_storage, write_all
from hookloop.errors import CheckpointError


def read(storage, name):
    with storage.open(name) as file:
        return file.read()


def test_a_file_is_written_listed_read_and_removed(storage):
    assert storage.names() == []
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    assert (storage.names(), storage.size("a.pth"), read(storage, "a.pth")) == (
        ["a.pth"],
        3,
        b"abc",
    )
    storage.remove("a.pth")
    storage.remove("a.pth")  # It is not an error if it is already gone.
    assert storage.names() == []


def test_a_failed_write_leaves_no_trace_and_the_old_file(storage):
    def fail(file):
        write_all(file, b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    storage.write("a.pth", lambda file: write_all(file, b"old"))
    for name in ("a.pth", "b.pth"):
        with pytest.raises(OSError, match="No space left"):
            storage.write(name, fail)
    assert storage.names() == ["a.pth"]
    assert read(storage, "a.pth") == b"old"


def test_a_file_is_kept_under_a_second_name(storage):
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    storage.write("b.pth", lambda file: write_all(file, b"older"))
    storage.copy("a.pth", "b.pth")
    storage.remove("a.pth")
    assert read(storage, "b.pth") == b"abc"
    with pytest.raises(FileNotFoundError):
        storage.copy("a.pth", "c.pth")
    storage.copy("b.pth", "b.pth")
    assert storage.names() == ["b.pth"]
    assert storage.clean() == []


def test_the_second_name_of_a_local_file_is_a_link(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    for _ in range(2):
        storage.copy("a.pth", "b.pth")
    assert os.path.samefile(tmp_path / "a.pth", tmp_path / "b.pth")
    assert storage.clean() == []


def test_where_links_are_not_supported_it_is_a_copy(tmp_path, monkeypatch):
    def forbid(*names):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", forbid)
    storage = LocalStorage(tmp_path)
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    storage.copy("a.pth", "b.pth")
    assert read(storage, "b.pth") == b"abc"
    assert not os.path.samefile(tmp_path / "a.pth", tmp_path / "b.pth")


def test_a_file_is_flushed_before_it_gets_its_name_and_the_directory_after(tmp_path, monkeypatch):
    seen = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor):
        seen.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def note_replace(*names):
        seen.append("rename")
        replace(*names)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    LocalStorage(tmp_path).write("a.pth", lambda file: write_all(file, b"abc"))
    assert seen == ["file", "rename", "directory"]


def test_what_a_killed_process_left_is_hidden_and_cleaned(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    (tmp_path / ".b.pth.staged").write_bytes(b"half")
    (tmp_path / ".hidden").write_bytes(b"of another program")
    assert storage.names() == ["a.pth"]
    assert storage.clean() == [".b.pth.staged"]
    assert sorted(os.listdir(tmp_path)) == [".hidden", "a.pth"]


def test_a_directory_that_was_removed_is_made_again(tmp_path):
    storage = LocalStorage(tmp_path / "run")
    storage.write("a.pth", lambda file: write_all(file, b"abc"))
    shutil.rmtree(tmp_path / "run")
    assert storage.names() == []
    storage.write("b.pth", lambda file: write_all(file, b"abc"))
    assert storage.names() == ["b.pth"]


def test_data_is_written_whole_where_a_file_takes_a_part_at_a_time():
    class Small:
        def __init__(self):
            self.got = b""

        def write(self, data):
            self.got += bytes(data[:2])
            return min(2, len(data))

    small = Small()
    write_all(small, b"abcde")
    assert small.got == b"abcde"


def test_a_url_of_an_unknown_protocol_is_rejected():
    assert isinstance(open_storage("memory://x"), RemoteStorage)
    with pytest.raises(CheckpointError, match="'nosuch'"):
        open_storage("nosuch://x")


@pytest.mark.parametrize(
    "url",
    [
        "reference://::data:application/json;base64,e30=",
        "simplecache::memory://x",
        "zip://x.pth::memory://y.zip",
        "reference://x",
        "github://someone:repo@main/x",
        "jupyter://x",
    ],
)
def test_a_url_that_is_not_a_plain_store_never_reaches_fsspec(url, monkeypatch):
    opened = []
    monkeypatch.setattr("fsspec.core.url_to_fs", opened.append)
    with pytest.raises(CheckpointError, match="cannot be opened"):
        open_storage(url)
    assert opened == []


def test_a_protocol_that_the_program_registered_itself_is_accepted():
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.registry import _registry, register_implementation

    class Mine(MemoryFileSystem):
        protocol = "mine"

    register_implementation("mine", Mine)
    try:
        assert isinstance(open_storage("mine://x"), RemoteStorage)
    finally:
        _registry.pop("mine")
