"""One batch: its parts, its size, its way to the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import cast

import torch
from torch import Tensor


def is_pair(batch: object) -> bool:
    """Tell whether a batch has the common form (inputs, targets)."""
    return isinstance(batch, (tuple, list)) and len(batch) == 2  # A union would be made anew.


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


def to_device(value: object, device: torch.device) -> object:
    """Move the tensors of a batch, whatever they are nested in; other parts stay as they are."""
    # Only from pinned memory is this asynchronous; elsewhere torch ignores the wish.
    return move_tensors(value, device, lambda tensor: tensor.to(device, non_blocking=True))


def move_tensors(value: object, device: torch.device, move: Callable[[Tensor], Tensor]) -> object:
    """Move a batch with a function of one's own for tensors; parts that can do so move themselves.

    Args:
        value: The batch, or a part of it.
        device: Where parts are sent that have a method ``to``.
        move: Moves a tensor.
    """

    def again(part: object) -> object:
        return move_tensors(part, device, move)

    if isinstance(value, Tensor):
        return move(value)
    mover = getattr(value, "to", None)  # Tokenizers' batches and their kind move themselves.
    if isinstance(value, Mapping) and not callable(mover):
        return {key: again(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make = cast("Callable[..., object]", type(value))
        return make(*(again(part) for part in value))
    if isinstance(value, tuple | list):
        return type(value)(again(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: again(getattr(value, f.name)) for f in fields(value) if f.init}
        return replace(value, **parts)
    return mover(device) if callable(mover) else value
