"""A checkpoint for others: only what is wanted of it, named after its own checksum."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from hookloop.checkpoint.storage import put
from hookloop.checkpoint.store import CheckpointStore
from hookloop.errors import CheckpointError, nearest

Format = Literal["pth", "safetensors"]

DIGITS = 8


def publish(
    store: CheckpointStore, name: str, keys: Sequence[str], formats: Sequence[Format]
) -> list[str]:
    """Write what ``keys`` name of a checkpoint beside it, and return the names of the files.

    Each is named after the checkpoint and the first digits of the SHA-256 of the very file:
    ``epoch_5-1a2b3c4d.pth``. A safetensors file holds the tensors alone.
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
        data = made[form](parts)
        digits = hashlib.sha256(data).hexdigest()[:DIGITS]
        published = f"{Path(name).stem}-{digits}.{form}"
        store.storage.write(published, lambda file, data=data: put(file, data))  # type: ignore[misc]
        written.append(published)
    return written


def _as_torch(parts: Mapping[str, object]) -> bytes:
    file = io.BytesIO()
    torch.save(dict(parts), file)
    return file.getvalue()


def _as_safetensors(parts: Mapping[str, object]) -> bytes:
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    for key, part in parts.items():
        _collect(part, "" if len(parts) == 1 else key, tensors)
    seen: set[int] = set()
    for name, tensor in tensors.items():
        # The format knows no tied weights: each name has numbers of its own.
        tensors[name] = tensor.clone() if tensor.data_ptr() in seen else tensor.contiguous()
        seen.add(tensor.data_ptr())
    # One entry only: several are written in any order, and the hash would not be the same again.
    return save(tensors, {"format": "pt"})


def _collect(part: object, name: str, tensors: dict[str, Tensor]) -> None:
    if isinstance(part, Tensor):
        tensors[name] = part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            _collect(value, f"{name}.{key}" if name else str(key), tensors)
