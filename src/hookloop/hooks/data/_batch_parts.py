"""The parts of a batch, for hooks that replace some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import cast

from torch import Tensor

from hookloop.data.description import describe
from hookloop.engine.hook import Hook
from hookloop.errors import HookError

BatchKey = int | str
"""Where a part of a batch is: its index, its key or its attribute."""


def part_of(hook: Hook, batch: object, key: BatchKey) -> Tensor:
    """Return a tensor of a batch.

    Raises:
        HookError: If there is none.
    """
    part: object = None
    if isinstance(batch, Mapping):
        part = batch.get(key)
    elif isinstance(key, str):
        part = getattr(batch, key, None)
    elif isinstance(batch, Sequence) and -len(batch) <= key < len(batch):
        part = batch[key]
    if not isinstance(part, Tensor):
        raise HookError(
            f"{type(hook).__name__}: there is no tensor at {key!r} of the batch, which is "
            f"{describe(batch)}: give inputs= and targets=, the index or key of each."
        )
    return part


def with_part(batch: object, key: BatchKey, part: Tensor) -> object:
    """Return a copy of a batch with one part replaced."""
    # Never in place: several optimizers get the batch as it was read, and a list of batches may
    # be iterated again in the next epoch.
    if isinstance(batch, Mapping):
        return {**batch, key: part}
    # A named tuple is a tuple, but its class takes the values as separate arguments.
    if isinstance(batch, tuple) and hasattr(batch, "_replace"):
        name = key if isinstance(key, str) else batch._fields[key]  # type: ignore[attr-defined]
        return batch._replace(**{name: part})
    if is_dataclass(batch) and not isinstance(batch, type):
        return replace(batch, **{str(key): part})
    parts = list(cast("Sequence[object]", batch))
    parts[cast("int", key)] = part
    return parts if isinstance(batch, list) else tuple(parts)
