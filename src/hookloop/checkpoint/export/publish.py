"""Publish a checkpoint: only the wanted parts, in a file named after its own checksum."""

from __future__ import annotations

import hashlib
import io
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor

from hookloop.checkpoint.store.storage import write_all
from hookloop.checkpoint.store.store import CheckpointStore, load
from hookloop.errors import CheckpointError, nearest

Format = Literal["pth", "safetensors"]

DIGITS = 8
METADATA = "hookloop"
"""Key of the metadata in the header of a safetensors file."""


def publish(
    store: CheckpointStore,
    name: str,
    keys: Sequence[str],
    formats: Sequence[Format],
    metadata: Mapping[str, object] = MappingProxyType({}),
) -> list[str]:
    """Write some parts of a checkpoint next to it; return the names of the files.

    Each is named after the checkpoint and the first digits of its own SHA-256:
    ``epoch_5-1a2b3c4d.pth``. A single part is written as it is, so that ``load_state_dict`` takes
    what ``torch.load`` returns. A safetensors file holds only the tensors.

    Args:
        store: Where the checkpoint is.
        name: Its name.
        keys: The parts to publish.
        formats: The kinds of file.
        metadata: Plain values that describe it; `read_metadata` returns them.
    """
    checkpoint = store.load(name)
    for key in keys:
        if key not in checkpoint:
            raise CheckpointError(
                f"'{store.location}/{name}' has no '{key}' to publish.{nearest(key, checkpoint)} "
                f"There are: {', '.join(checkpoint)}."
            )
    parts = {key: checkpoint[key] for key in keys}
    written = []
    for suffix in formats:
        # In memory first: the name of the file depends on its contents.
        data = encode(parts, suffix, metadata)
        digits = hashlib.sha256(data).hexdigest()[:DIGITS]
        published = f"{Path(name).stem}-{digits}.{suffix}"
        store.storage.write(published, lambda file, data=data: write_all(file, data))  # type: ignore[misc]
        written.append(published)
    return written


def encode(parts: Mapping[str, object], format: Format, metadata: Mapping[str, object]) -> bytes:
    """Return the contents of a file with these parts; the same parts give the same bytes."""
    encoders = {"pth": _as_torch, "safetensors": _as_safetensors}
    return encoders[format](parts, metadata)


def read_metadata(path: str | Path) -> dict[str, object]:
    """Return the metadata of a published file; empty if it has none."""
    if str(path).endswith(".safetensors"):
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            metadata: object = json.loads((file.metadata() or {}).get(METADATA, "{}"))
    else:
        metadata = getattr(load(path), "metadata", {})
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def _as_torch(parts: Mapping[str, object], metadata: Mapping[str, object]) -> bytes:
    only = next(iter(parts.values()))
    whole = only if len(parts) == 1 and isinstance(only, Mapping) else parts
    # An attribute, because load_state_dict would reject one more entry as unexpected.
    published: OrderedDict[str, object] = OrderedDict(whole)
    published.metadata = dict(metadata)  # type: ignore[attr-defined]
    file = io.BytesIO()
    torch.save(published, file)
    return file.getvalue()


def _as_safetensors(parts: Mapping[str, object], metadata: Mapping[str, object]) -> bytes:
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    for key, part in parts.items():
        _collect(part, "" if len(parts) == 1 else key, tensors)
    seen: set[int] = set()
    for name, tensor in tensors.items():
        # The format has no tied weights: each name needs its own numbers.
        tensors[name] = tensor.clone() if tensor.data_ptr() in seen else tensor.contiguous()
        seen.add(tensor.data_ptr())
    return _with_header(save(tensors), {"format": "pt", METADATA: json.dumps(dict(metadata))})


def _with_header(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """Put metadata into a safetensors file."""
    # The library writes metadata in random order, so the same contents would get another hash.
    length = int.from_bytes(data[:8], "little")
    header = {"__metadata__": dict(metadata)} | json.loads(data[8 : 8 + length])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The format aligns the tensors to 8 bytes.
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _collect(part: object, name: str, tensors: dict[str, Tensor]) -> None:
    if isinstance(part, Tensor):
        tensors[name] = part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            _collect(value, f"{name}.{key}" if name else str(key), tensors)
