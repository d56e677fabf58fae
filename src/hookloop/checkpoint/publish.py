"""A checkpoint for others: only what is wanted of it, named after its own checksum."""

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

from hookloop.checkpoint.storage import put
from hookloop.checkpoint.store import CheckpointStore, load
from hookloop.errors import CheckpointError, nearest

Format = Literal["pth", "safetensors"]

DIGITS = 8
METADATA = "hookloop"
"""Under which key of a safetensors file's header the metadata stand."""


def publish(
    store: CheckpointStore,
    name: str,
    keys: Sequence[str],
    formats: Sequence[Format],
    metadata: Mapping[str, object] = MappingProxyType({}),
) -> list[str]:
    """Write what ``keys`` name of a checkpoint beside it, and return the names of the files.

    Each is named after the checkpoint and the first digits of the SHA-256 of the very file:
    ``epoch_5-1a2b3c4d.pth``. A single part is written as it is, so that ``load_state_dict`` takes
    what ``torch.load`` returns. A safetensors file holds the tensors alone.

    Args:
        store: Where the checkpoint is.
        name: Its name.
        keys: The parts to publish.
        formats: The kinds of file.
        metadata: What is to be known of it, in plain values; `read_metadata` returns it.
    """
    checkpoint = store.load(name)
    for key in keys:
        if key not in checkpoint:
            known = ", ".join(checkpoint)
            raise CheckpointError(
                f"'{store.place}/{name}' has no '{key}' to publish.{nearest(key, checkpoint)} "
                f"There are: {known}."
            )
    parts = {key: checkpoint[key] for key in keys}
    made = {"pth": _as_torch, "safetensors": _as_safetensors}
    written = []
    for form in formats:
        data = made[form](parts, metadata)
        digits = hashlib.sha256(data).hexdigest()[:DIGITS]
        published = f"{Path(name).stem}-{digits}.{form}"
        store.storage.write(published, lambda file, data=data: put(file, data))  # type: ignore[misc]
        written.append(published)
    return written


def read_metadata(path: str | Path) -> dict[str, object]:
    """Return what is known of a published file; nothing if it has none."""
    if str(path).endswith(".safetensors"):
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            said: object = json.loads((file.metadata() or {}).get(METADATA, "{}"))
    else:
        said = getattr(load(path), "metadata", {})
    return dict(said) if isinstance(said, Mapping) else {}


def _as_torch(parts: Mapping[str, object], metadata: Mapping[str, object]) -> bytes:
    only = next(iter(parts.values()))
    whole = only if len(parts) == 1 and isinstance(only, Mapping) else parts
    # An attribute, since an entry of its own would be unexpected to load_state_dict.
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
        # The format knows no tied weights: each name has numbers of its own.
        tensors[name] = tensor.clone() if tensor.data_ptr() in seen else tensor.contiguous()
        seen.add(tensor.data_ptr())
    return _with_header(save(tensors), {"format": "pt", METADATA: json.dumps(dict(metadata))})


def _with_header(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """Put metadata into a safetensors file.

    The library writes them in any order, and the hash would not be the same again.
    """
    length = int.from_bytes(data[:8], "little")
    header = {"__metadata__": dict(metadata)} | json.loads(data[8 : 8 + length])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The tensors begin at a multiple of 8.
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _collect(part: object, name: str, tensors: dict[str, Tensor]) -> None:
    if isinstance(part, Tensor):
        tensors[name] = part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            _collect(value, f"{name}.{key}" if name else str(key), tensors)
