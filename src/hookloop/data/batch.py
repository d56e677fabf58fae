"""One batch: its parts, its size, its way to the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import cast

import torch
from torch import Tensor


def is_pair(batch: object) -> bool:
    """Tell whether a batch has the common form (inputs, targets)."""
    return isinstance(batch, tuple | list) and len(batch) == 2


def size_of(batch: object) -> int:
    """Count the samples of a batch by the first tensor in it; what has none counts as one.

    >>> size_of({"image": torch.zeros(4, 2), "label": torch.zeros(4)})
    4
    """
    tensor = _first_tensor(batch)
    return tensor.shape[0] if tensor is not None and tensor.ndim else 1


def _first_tensor(value: object) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    parts: object = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    elif is_dataclass(value):
        parts = (getattr(value, field.name) for field in fields(value))
    for part in cast("tuple[object, ...]", parts):
        found = _first_tensor(part)
        if found is not None:
            return found
    return None


def to_device(value: object, device: torch.device) -> object:  # noqa: PLR0911 - one per form
    """Move the tensors of a batch, whatever they are nested in; other parts stay as they are."""
    if isinstance(value, Tensor):
        # Only from pinned memory is this asynchronous; elsewhere torch ignores the wish.
        return value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        if type(value) is not dict and callable(mover := getattr(value, "to", None)):
            return mover(device)  # Tokenizers' batches and their kind move themselves.
        return {key: to_device(part, device) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make = cast("Callable[..., object]", type(value))
        return make(*(to_device(part, device) for part in value))
    if isinstance(value, tuple | list):
        return type(value)(to_device(part, device) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: to_device(getattr(value, f.name), device) for f in fields(value) if f.init}
        return replace(value, **parts)
    mover = getattr(value, "to", None)
    return mover(device) if callable(mover) else value
