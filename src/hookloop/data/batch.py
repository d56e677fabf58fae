"""One batch: its parts, its size, and how it moves to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass, replace
from typing import TypeGuard, cast

import numpy as np
import torch
from torch import Tensor


def is_pair(batch: object) -> bool:
    """Return whether a batch has the common form (inputs, targets)."""
    # A tuple of types: `tuple | list` would build a new union at every call.
    return isinstance(batch, (tuple, list)) and len(batch) == 2


def pair_of(batch: object) -> tuple[object, object] | None:
    """Return inputs and targets of a pair, or of a mapping with ``input`` and ``target``.

    >>> pair_of({"input": 1, "target": 2, "id": 3})
    (1, 2)
    """
    if isinstance(batch, (tuple, list)):
        return (batch[0], batch[1]) if len(batch) == 2 else None
    if isinstance(batch, Mapping) and "input" in batch and "target" in batch:
        return batch["input"], batch["target"]
    return None


def inputs_in(batch: object, *, has_loss: bool) -> object:
    """Return what the model gets: the inputs of a pair, or the whole batch.

    With ``loss=`` a mapping with ``input`` and ``target`` is a pair, too.

    >>> inputs_in({"input": 1, "target": 2}, has_loss=True)
    1
    """
    pair = pair_of(batch) if has_loss or is_pair(batch) else None
    return batch if pair is None else pair[0]


def size_of(batch: object) -> int:
    """Count the samples of a batch: by a tensor or array in it, or by a list of other values.

    A tensor outside of lists decides before those in lists, each of which may be a sample. For an
    object, ``num_graphs``, ``batch_size``, its attributes or its length decide, in this order.
    What has nothing to count is one sample.

    >>> size_of({"image": torch.zeros(4, 2), "label": torch.zeros(4)})
    4
    >>> size_of(([torch.zeros(3, 9, 9), torch.zeros(3, 8, 8)], [{"boxes": 1}, {"boxes": 2}]))
    2
    """
    size = count_samples(batch)
    return 1 if size is None else size


def is_scalar(value: object) -> TypeGuard[Tensor | float]:
    """Return whether a value is one number."""
    if isinstance(value, Tensor):
        return value.ndim == 0
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


_NUMBERS = (int, float, np.integer, np.floating)


def count_samples(value: object) -> int | None:
    """Count the samples of a batch, or of a part of one; None if there is nothing to count."""
    if (length := _length(value)) is not None:
        return length
    if not _is_plain(value):
        return _size_of_object(value)
    parts = _parts(value)
    for count in (_length, listed_samples, count_samples):
        for part in parts:
            if (size := count(part)) is not None:
                return size
    return listed_samples(value)


def counted_part(batch: Mapping[str, object]) -> str:
    """Return the name of the part by which the samples of a batch are counted.

    >>> counted_part({"a": (torch.zeros(2, 3), torch.zeros(2)), "b": torch.zeros(4, 3)})
    'b'
    """
    for count in (_length, listed_samples, count_samples):
        for name, part in batch.items():
            if count(part) is not None:
                return name
    return next(iter(batch))


def _is_plain(value: object) -> bool:
    return isinstance(value, (tuple, list, Mapping)) or is_dataclass(value)


def _length(value: object) -> int | None:
    """Return the first dimension of a tensor or an array."""
    shape = getattr(value, "shape", None)
    return shape[0] if isinstance(shape, tuple) and shape else None


def listed_samples(value: object) -> int | None:
    """Return the length of a list of samples, or None if it is not such a list."""
    if not isinstance(value, (tuple, list)) or not value:
        return None
    first = value[0]
    if isinstance(first, _SINGLE):
        return len(value) if all(isinstance(one, _SINGLE) for one in value) else None
    if isinstance(first, Mapping):
        # Two samples share keys. Two mappings without a common key are inputs and targets.
        alike = all(isinstance(one, Mapping) and one.keys() & first.keys() for one in value)
        return len(value) if alike else None
    if not all(isinstance(one, (tuple, list)) for one in value):
        return None
    if are_samples(value):
        return len(value)
    return len(first) if are_samples(list(zip(*value, strict=False))) else None


_SINGLE = (str, bytes, int, float)


def are_samples(rows: Sequence[Sequence[object]]) -> bool:
    """Return whether lists are samples, like [(x0, y0), (x1, y1)], and not parts of a batch."""
    if not rows:
        return False
    first, *others = rows
    kinds = [_kind(part) for part in first]
    if len(set(kinds)) < 2 or any([_kind(part) for part in row] != kinds for row in others):
        return False
    # The parts of a batch have the same length, such as (tokens, lengths) of inputs and of targets.
    lengths = {listed_samples(part) if (n := _length(part)) is None else n for part in first}
    return None in lengths or len(lengths) > 1


def _kind(value: object) -> tuple[type, int]:
    return type(value), len(getattr(value, "shape", ()))


def _size_of_object(value: object) -> int | None:
    """Return the size of an object that is not a plain container."""
    for name in ("num_graphs", "batch_size"):
        if isinstance(size := getattr(value, name, None), int):
            return size
    # One level only, without recursion: attributes may lead back to the object itself.
    for count in (_length, listed_samples):
        for part in getattr(value, "__dict__", {}).values():
            if (size_of_part := count(part)) is not None:
                return size_of_part
    if isinstance(value, (Tensor, *_SINGLE)):
        return None
    return len(value) if isinstance(value, Sized) else None


def _parts(value: object) -> list[object]:
    if isinstance(value, (tuple, list)):
        return [] if listed_samples(value) else list(value)
    if isinstance(value, Mapping):
        return list(value.values())
    return [getattr(value, field.name) for field in fields(value)]  # type: ignore[arg-type]


def to_device(value: object, device: torch.device) -> object:
    """Move the tensors of a batch, whatever they are nested in; other parts stay as they are."""
    # This is asynchronous only from pinned memory; otherwise torch ignores the flag.
    return move_tensors(value, device, lambda tensor: tensor.to(device, non_blocking=True))


def move_tensors(value: object, device: torch.device, move: Callable[[Tensor], Tensor]) -> object:
    """Move a batch to a device with a function for tensors.

    Args:
        value: The batch, or a part of it.
        device: The target for parts that have a method ``to`` of their own.
        move: Moves a tensor.
    """

    def move_part(part: object) -> object:
        return move_tensors(part, device, move)

    if isinstance(value, Tensor):
        return move(value)
    # The batches of tokenizers are mappings with a method `to`, and must stay of their own type.
    own_move = getattr(value, "to", None)
    if isinstance(value, Mapping) and not callable(own_move):
        return {key: move_part(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make = cast("Callable[..., object]", type(value))
        return make(*(move_part(part) for part in value))
    if isinstance(value, tuple | list):
        return type(value)(move_part(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: move_part(getattr(value, f.name)) for f in fields(value) if f.init}
        return replace(value, **parts)
    return own_move(device) if callable(own_move) else value
