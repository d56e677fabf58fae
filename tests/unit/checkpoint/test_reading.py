import os
import pickle
from dataclasses import replace

import pytest
import torch
from tests.names import iter_file

from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.reading import read_checkpoint
from hookloop.checkpoint.store.storage import LocalStorage, write_all
from hookloop.checkpoint.store.writing import write_checkpoint
from hookloop.errors import CheckpointError


@pytest.fixture
def listed(storage):
    """The entry of a whole file that the storage holds."""
    written = write_checkpoint(storage, "a.pth", {"model": {"w": torch.arange(5)}})
    return Saved("a.pth", storage.url, 1, 0, size=written.size, crc32=written.crc32)


def test_a_whole_file_is_read_with_and_without_its_entry(storage, listed):
    for entry in (listed, None):
        found = read_checkpoint(storage, "a.pth", entry)
        assert found["model"]["w"].tolist() == [0, 1, 2, 3, 4]


def test_a_missing_and_an_empty_file_are_rejected(storage, listed):
    with pytest.raises(CheckpointError, match=r"/b\.pth' is missing\."):
        read_checkpoint(storage, "b.pth", None)
    storage.write("b.pth", lambda file: write_all(file, b""))
    with pytest.raises(CheckpointError, match=r"/b\.pth' is empty\."):
        read_checkpoint(storage, "b.pth", None)


def test_a_file_of_another_size_or_checksum_is_damaged(storage, listed):
    wrong_size = replace(listed, size=listed.size + 1)
    with pytest.raises(CheckpointError, match=f"{listed.size} bytes instead of {listed.size + 1}"):
        read_checkpoint(storage, "a.pth", wrong_size)
    with pytest.raises(CheckpointError, match="is damaged: its checksum is wrong"):
        read_checkpoint(storage, "a.pth", replace(listed, crc32=listed.crc32 ^ 1))


def test_a_file_that_is_not_a_mapping_is_rejected(tmp_path):
    torch.save([1], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds a list, not a checkpoint"):
        read_checkpoint(LocalStorage(tmp_path), "list.pth", None)


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def write_pickle(value, path):
    path.write_bytes(pickle.dumps(value, protocol=2))


@pytest.mark.parametrize("write", [torch.save, write_pickle])
def test_a_malicious_file_never_runs(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    write({"progress": {}, "model": Malicious()}, tmp_path / iter_file(1))
    reason = r"iter_1.pth' cannot be loaded: .* tensors and plain containers \(posix.mkdir\)"
    with pytest.raises(CheckpointError, match=reason):
        read_checkpoint(LocalStorage(tmp_path), iter_file(1), None)
    assert os.listdir(tmp_path) == [iter_file(1)]


def test_the_message_never_advises_to_run_the_code(tmp_path):
    torch.save({"model": Malicious()}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(LocalStorage(tmp_path), "a.pth", None)
    assert "weights_only" not in str(caught.value)
