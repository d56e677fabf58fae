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
    """Count the samples of a batch: by a tensor or array in it, or a list of other things.

    A tensor that stands by itself decides before those in lists, each of which may be a sample.
    What has nothing to count is one sample.

    >>> size_of({"image": torch.zeros(4, 2), "label": torch.zeros(4)})
    4
    >>> size_of(([torch.zeros(3, 9, 9), torch.zeros(3, 8, 8)], [{"boxes": 1}, {"boxes": 2}]))
    2
    """
    size = _size(batch)
    return 1 if size is None else size


def _size(value: object) -> int | None:
    if (length := _length(value)) is not None:
        return length
    parts = _parts(value)
    for count in (_length, _listed, _size):
        for part in parts:
            if (size := count(part)) is not None:
                return size
    return _listed(value)


def _length(value: object) -> int | None:
    """Return the first dimension of a tensor or an array."""
    shape = getattr(value, "shape", None)
    return shape[0] if isinstance(shape, tuple) and shape else None


def _listed(value: object) -> int | None:
    """Return the length of a list of samples: of what is no tensor, and no list of any."""
    if not isinstance(value, (tuple, list)) or not value:
        return None
    return len(value) if isinstance(value[0], (str, bytes, int, float, Mapping)) else None


def _parts(value: object) -> list[object]:
    if isinstance(value, (tuple, list)):
        return [] if _listed(value) else list(value)
    if isinstance(value, Mapping):
        return list(value.values())
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    return []


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
