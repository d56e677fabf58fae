import os
import pickle
import zlib
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex

from hookloop.checkpoint.shards.layout import read_layout
from hookloop.checkpoint.shards.manifest import encode_manifest, read_manifest, verify
from hookloop.checkpoint.shards.reading import Shards
from hookloop.checkpoint.store.writing import WrittenFile
from hookloop.errors import CheckpointError


def replace(directory: Path, metadata: object) -> None:
    """Put another description into a directory, with a manifest that fits."""
    data = metadata if isinstance(metadata, bytes) else pickle.dumps(metadata)
    (directory / ".metadata").write_bytes(data)
    manifest = read_manifest(directory)
    files = {**manifest.files, ".metadata": WrittenFile(len(data), zlib.crc32(data))}
    (directory / "manifest.json").write_bytes(encode_manifest(files, manifest.facts))
    verify(directory)


def original(directory: Path) -> Metadata:
    return pickle.loads((directory / ".metadata").read_bytes())


def test_it_is_what_torch_reads(shards) -> None:
    directory, _ = shards
    layout, whole = read_layout(directory, read_manifest(directory)), original(directory)
    assert layout.storage_data == whole.storage_data
    assert list(layout.state_dict_metadata) == list(whole.state_dict_metadata)
    for name, tensor in whole.state_dict_metadata.items():
        found = layout.state_dict_metadata[name]
        assert (found.size, found.chunks) == (tensor.size, tensor.chunks)
        assert found.properties.dtype == tensor.properties.dtype


class Runs:
    """Its pickle makes a directory when it is read."""

    def __init__(self, call: object, *args: object) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> tuple[object, ...]:
        return self.call, self.args


def test_no_code_in_it_runs(shards, tmp_path: Path) -> None:
    directory, _ = shards
    metadata = original(directory)
    for call in (os.mkdir, os.system, eval, __import__, torch.load, getattr):
        metadata.planner_data = Runs(call, str(tmp_path / "made"))
        replace(directory, metadata)
        with pytest.raises(CheckpointError, match="which no layout does"):
            Shards.open(directory)
    replace(directory, b"cposix\nsystem\n(S'touch made'\ntR.")
    with pytest.raises(CheckpointError, match="posix.system"):
        Shards.open(directory)
    assert [path.name for path in tmp_path.iterdir()] == ["iter_3"]


def test_it_cannot_change_a_class_of_torch(shards) -> None:
    directory, _ = shards
    # The class itself on the stack, and a state for it: sets attributes of the class.
    name = b"ctorch.distributed.checkpoint.metadata\nMetadata\n"
    replace(directory, b"\x80\x02" + name + b"N}X\x05\x00\x00\x00extraK\x01s\x86b.")
    with pytest.raises(CheckpointError):
        Shards.open(directory)
    assert not hasattr(Metadata, "extra")


def with_storage(metadata: Metadata, **change: object) -> Metadata:
    index = MetadataIndex("model.w", torch.Size([0, 0]))
    old = vars(metadata.storage_data[index])
    metadata.storage_data[index] = _StorageInfo(**{**old, **change})
    return metadata


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relative_path": "../other"}, "is not in a file of the checkpoint"),
        ({"relative_path": "/etc/passwd"}, "is not in a file of the checkpoint"),
        ({"offset": -1}, "is not in a file of the checkpoint"),
        ({"length": 1 << 40}, "is not in a file of the checkpoint"),
        ({"length": 10}, "is larger than its file"),
        ({"transform_descriptors": ["os.system"]}, "in a way that is not known"),
    ],
)
def test_tensors_are_in_the_files_that_were_verified(shards, change, message: str) -> None:
    replace(shards[0], with_storage(original(shards[0]), **change))
    with pytest.raises(CheckpointError, match=message):
        Shards.open(shards[0])


@pytest.mark.parametrize("rows", [39, 41, 1 << 50])
def test_parts_make_up_the_whole(shards, rows: int) -> None:
    metadata = original(shards[0])
    tensor = metadata.state_dict_metadata["model.w"]
    tensor.size = torch.Size([rows, 3])
    replace(shards[0], metadata)
    with pytest.raises(CheckpointError, match="'model.w'"):
        Shards.open(shards[0])
    tensor.chunks = [ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([rows, 3]))]
    replace(shards[0], metadata)
    if rows > 40:
        with pytest.raises(CheckpointError):
            Shards.open(shards[0]).read_all()


@pytest.mark.parametrize("data", [b"", b"N.", pickle.dumps([1]), pickle.dumps(torch.Size([1]))])
def test_something_else_is_rejected(shards, data: bytes) -> None:
    replace(shards[0], data)
    with pytest.raises(CheckpointError, match=r"\.metadata' is not a description of shards"):
        Shards.open(shards[0])
