import os
import threading

import pytest
import torch

from hookloop.checkpoint.store import writing
from hookloop.checkpoint.store.storage import LocalStorage
from hookloop.checkpoint.store.writing import write_checkpoint
from hookloop.runs.checksum import find_damage


@pytest.fixture
def flushed(monkeypatch):
    """The sizes that an unfinished file had when its pages were handed to the disk."""
    sizes = []
    original = os.posix_fadvise

    def advise(descriptor, *arguments):
        sizes.append(os.fstat(descriptor).st_size)
        original(descriptor, *arguments)

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(writing, "FLUSH_EVERY", 0.001)
    return sizes


def write(directory):
    weights = torch.arange(4_000_000)
    written = write_checkpoint(LocalStorage(directory), "one.pth", {"model": {"weight": weights}})
    path = directory / "one.pth"
    assert path.stat().st_size == written.size
    assert torch.equal(torch.load(path, weights_only=True)["model"]["weight"], weights)
    with path.open("rb") as file:
        assert find_damage(file, written.crc32) is None


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot")
def test_the_disk_starts_while_the_file_is_written(flushed, tmp_path, monkeypatch):
    original = torch.save

    def save_slowly(checkpoint, path):
        original(checkpoint, path)
        before = len(flushed)
        while len(flushed) == before:  # Only another flush ends this loop.
            pass

    monkeypatch.setattr(torch, "save", save_slowly)
    write(tmp_path)
    assert flushed[-1] > 32_000_000
    assert not [one for one in threading.enumerate() if one.name == "hookloop-flush"]


def test_a_system_that_cannot_writes_the_same(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    write(tmp_path)


def test_a_failed_write_leaves_no_thread(tmp_path):
    with pytest.raises(TypeError):
        write_checkpoint(LocalStorage(tmp_path), "one.pth", {"lock": threading.Lock()})
    assert not [one for one in threading.enumerate() if one.name == "hookloop-flush"]
    assert list(tmp_path.iterdir()) == []
