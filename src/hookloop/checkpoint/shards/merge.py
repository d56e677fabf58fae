"""Join the shards of a checkpoint into one safetensors file, a tensor at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from hookloop.checkpoint.shards.reading import Shards
from hookloop.checkpoint.store.storage import (
    LocalStorage,
    is_checkpoint_directory,
    is_url,
    write_all,
)
from hookloop.checkpoint.store.store import load
from hookloop.errors import CheckpointError, nearest

ENDING = ".safetensors"

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}
"""The types of tensors that the format has, with their names there."""


class Source(NamedTuple):
    """A tensor to be written: what the header says about it, and how to get it."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    read: Callable[[], Tensor]

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def join(checkpoint: str | Path, out: str | Path, part: str = "model") -> int:
    """Write the tensors of a part of a checkpoint into one file; return how many.

    Of a directory of shards, one tensor at a time is in memory. Its header comes from the
    description of the shards, before any of them is read.

    Args:
        checkpoint: A directory of shards, or a file.
        out: The file to write, with the ending ``.safetensors``.
        part: The part to take, such as ``averaged``.

    Raises:
        CheckpointError: If the checkpoint is damaged, lacks the part, or the file exists already.
    """
    out = Path(out)
    if is_url(str(out)) or out.suffix != ENDING:
        raise CheckpointError(f"'{out}' must be a local file whose name ends in '{ENDING}'.")
    if out.exists():
        raise CheckpointError(f"'{out}' exists already. Delete it, or give another name.")
    is_directory = not is_url(checkpoint) and is_checkpoint_directory(Path(checkpoint))
    sources = (_of_shards if is_directory else _of_file)(checkpoint, part)
    for name, source in sources.items():
        if source.dtype not in TYPES:
            raise CheckpointError(f"'{name}' is of {source.dtype}, which '{ENDING}' cannot hold.")
    LocalStorage(out.parent).write(out.name, lambda file: _write(file, sources))
    return len(sources)


def _of_shards(checkpoint: str | Path, part: str) -> dict[str, Source]:
    shards = Shards.open(checkpoint)
    found = {}
    for key, path in shards.paths.items():
        if path[0] == part:
            form = shards.form(key)
            name = ".".join(map(str, path[1:]))
            found[name] = Source(form.properties.dtype, tuple(form.size), _reading(shards, key))
    if not found:
        parts = dict.fromkeys(str(path[0]) for path in shards.paths.values())
        raise _no_part(checkpoint, part, parts)
    return found


def _reading(shards: Shards, key: str) -> Callable[[], Tensor]:
    def read() -> Tensor:
        tensor = shards.empty(key)
        shards.read({key: tensor})
        return tensor

    return read


def _of_file(checkpoint: str | Path, part: str) -> dict[str, Source]:
    content = load(checkpoint)
    weights = content.get(part)
    # A plain state dict is the part itself.
    if all(isinstance(value, Tensor) for value in content.values()):
        weights = content
    if not isinstance(weights, Mapping):
        raise _no_part(checkpoint, part, content)
    return {
        str(name): Source(value.dtype, tuple(value.shape), lambda value=value: value)  # type: ignore[misc]
        for name, value in weights.items()
        if isinstance(value, Tensor)
    }


def _no_part(checkpoint: str | Path, part: str, parts: Mapping[str, object]) -> CheckpointError:
    return CheckpointError(
        f"'{checkpoint}' has no tensors under '{part}'.{nearest(part, parts)} There are: "
        f"{', '.join(map(str, parts))}."
    )


def _write(file: BinaryIO, sources: Mapping[str, Source]) -> None:
    # The widest types first, so that all numbers are aligned in the file.
    names = sorted(sources, key=lambda name: (-sources[name].dtype.itemsize, name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in names:
        source = sources[name]
        begin, end = end, end + source.nbytes
        header[name] = {
            "dtype": TYPES[source.dtype],
            "shape": list(source.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write_all(file, len(text).to_bytes(8, "little") + text)
    for name in names:
        numbers = sources[name].read().contiguous().reshape(-1).view(torch.uint8)
        write_all(file, numbers.numpy().data)
