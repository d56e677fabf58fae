"""torch's description of sharded tensors, read without running code.

torch keeps it as a pickle, ``.metadata``. Here each class that the pickle names becomes an empty
record, and torch's own objects are built from the records once all numbers in them were checked.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from hookloop.checkpoint.shards.manifest import Manifest, open_plain
from hookloop.checkpoint.store.storage import METADATA
from hookloop.errors import CheckpointError

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        TensorStorageMetadata,
    )

_METADATA = "torch.distributed.checkpoint.metadata"
RECORDS = {
    *((_METADATA, name) for name in ("Metadata", "MetadataIndex", "StorageMeta")),
    *((_METADATA, name) for name in ("TensorStorageMetadata", "ChunkStorageMetadata")),
    *((_METADATA, name) for name in ("TensorProperties", "_MEM_FORMAT_ENCODING")),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
}
"""What the pickle may name; of each only the arguments and the state are kept."""

MOST_DIMENSIONS = 64
"""Of a tensor of torch."""


def read_layout(directory: Path, manifest: Manifest) -> Metadata:
    """Read the description of the tensors in a directory whose files were verified.

    Raises:
        CheckpointError: If it is not torch's, or does not describe these files.
    """
    path = directory / METADATA
    try:
        with open_plain(path) as file:
            found = _Unpickler(file).load()
        return _metadata(found, manifest)
    except CheckpointError:
        raise
    # A pickle of a stranger can raise errors of nearly any type.
    except Exception as error:
        raise CheckpointError(f"'{path}' is not a description of shards: {error}") from error


class _Record:
    """What a pickle says about an object: its class, arguments and state."""

    kind = ""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: object) -> None:
        super().__init__(file)  # type: ignore[arg-type]
        # New classes for each file: a pickle can change the attributes of a class.
        self._classes: dict[str, type[_Record]] = {}

    def find_class(self, module: str, name: str, /) -> object:
        """Return a record for a class of the layout, or a dtype; everything else is rejected."""
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if (module, name) not in RECORDS:
            raise pickle.UnpicklingError(f"it holds {module}.{name}, which no layout does.")
        if name not in self._classes:
            # Pickle makes some objects without calling __init__.
            self._classes[name] = type(
                "Record", (_Record,), {"kind": name, "args": (), "state": None}
            )
        return self._classes[name]

    def persistent_load(self, pid: object, /) -> object:
        """Reject references to other files."""
        raise pickle.UnpicklingError("it leads to another file.")


def _state(record: object, kind: str) -> dict[str, object]:
    if not isinstance(record, _Record) or record.kind != kind or not isinstance(record.state, dict):
        raise ValueError(f"a {kind} is something else.")
    return cast("dict[str, object]", record.state)


def _numbers(record: object) -> torch.Size:
    """Return a shape or a place in a tensor."""
    if not isinstance(record, _Record) or record.kind != "Size" or len(record.args) != 1:
        raise ValueError("a size is something else.")
    (numbers,) = record.args
    if not isinstance(numbers, tuple | list) or len(numbers) > MOST_DIMENSIONS:
        raise ValueError("a size is something else.")
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
        raise ValueError("a size is something else.")
    return torch.Size(numbers)


def _metadata(record: object, manifest: Manifest) -> Metadata:
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import Metadata

    state = _state(record, "Metadata")
    tensors = {_text(name): _tensor(one) for name, one in _items(state.get("state_dict_metadata"))}
    stored = {}
    for key, info in _items(state.get("storage_data")):
        index, place = _index(key), _state(info, "_StorageInfo")
        file, offset = _text(place.get("relative_path")), place.get("offset")
        length = place.get("length")
        # No transformations: torch would look for code of that name.
        if place.get("transform_descriptors"):
            raise ValueError(f"'{index.fqn}' is stored in a way that is not known.")
        is_inside = type(offset) is int and type(length) is int and min(offset, length) >= 0
        if file not in manifest.files or not is_inside:
            raise ValueError(f"'{index.fqn}' is not in a file of the checkpoint.")
        offset, length = cast("int", offset), cast("int", length)
        if offset + length > manifest.files[file].size:
            raise ValueError(f"'{index.fqn}' is not in a file of the checkpoint.")
        stored[index] = _StorageInfo(file, offset, length)
    for name, tensor in tensors.items():
        _check_chunks(name, tensor, stored)
    return Metadata(tensors, storage_data=stored)  # type: ignore[arg-type]


def _items(value: object) -> Iterable[tuple[object, object]]:
    if not isinstance(value, Mapping):
        raise ValueError("a part of it is missing.")
    return value.items()


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("a name is not text.")
    return value


def _index(record: object) -> MetadataIndex:
    from torch.distributed.checkpoint.metadata import MetadataIndex

    state = _state(record, "MetadataIndex")
    offset = state.get("offset")
    # The third field is a hint for torch's search, and does not take part in comparisons.
    return MetadataIndex(_text(state.get("fqn")), None if offset is None else _numbers(offset))


def _tensor(record: object) -> TensorStorageMetadata:
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        TensorProperties,
        TensorStorageMetadata,
    )

    state = _state(record, "TensorStorageMetadata")
    properties, chunks = state.get("properties"), state.get("chunks")
    kept = properties.state if isinstance(properties, _Record) else None
    if not isinstance(kept, tuple) or not kept or not isinstance(kept[0], torch.dtype):
        raise ValueError("the type of a tensor is missing.")
    if not isinstance(chunks, list):
        raise ValueError("the parts of a tensor are missing.")
    fields = [_state(chunk, "ChunkStorageMetadata") for chunk in chunks]
    return TensorStorageMetadata(
        TensorProperties(dtype=kept[0]),
        _numbers(state.get("size")),
        [
            ChunkStorageMetadata(_numbers(one.get("offsets")), _numbers(one.get("sizes")))
            for one in fields
        ],
    )


def _check_chunks(
    name: str, tensor: TensorStorageMetadata, stored: Mapping[MetadataIndex, object]
) -> None:
    """Reject a tensor whose parts do not make up the whole: the rest would be any numbers."""
    from torch.distributed.checkpoint.metadata import MetadataIndex

    total = 0
    for chunk in tensor.chunks:
        place = stored.get(MetadataIndex(name, chunk.offsets))
        count = math.prod(chunk.sizes)
        if place is None or not _is_within(chunk, tensor.size):
            raise ValueError(f"a part of '{name}' is missing.")
        # Each number is in the file, so a small file cannot claim to be a huge tensor.
        if count * tensor.properties.dtype.itemsize > place.length:  # type: ignore[attr-defined]
            raise ValueError(f"'{name}' is larger than its file.")
        total += count
    if total != math.prod(tensor.size):
        raise ValueError(f"the parts of '{name}' do not make up the whole.")


def _is_within(chunk: ChunkStorageMetadata, size: torch.Size) -> bool:
    if len(chunk.offsets) != len(size) or len(chunk.sizes) != len(size):
        return False
    return all(o + s <= n for o, s, n in zip(chunk.offsets, chunk.sizes, size, strict=True))
