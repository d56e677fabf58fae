"""Data that divides itself among ranks, and data that cannot be divided.

Most data is read by every rank in the same order, and each takes its part of every batch. Data with
a method ``shard(rank, size)`` is asked for the part of one rank instead.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator

from torch.utils.data import DataLoader, IterableDataset

from hookloop.data.position.measures import batch_size_of
from hookloop.errors import DataError


def take_shard(data: Iterable[object], rank: int, size: int, name: str) -> Iterable[object] | None:
    """Return the data of one rank if the data, or its data set, has a method ``shard``."""
    dataset = getattr(data, "dataset", None)
    if isinstance(data, DataLoader) and not isinstance(dataset, IterableDataset):
        return None  # Each rank loads only its own samples anyway.
    for holder in (data, dataset):
        shard = getattr(holder, "shard", None)
        if callable(shard):
            break
    else:
        return None
    part = _call(shard, rank, size)
    if part is None:  # It has changed itself.
        return data
    if not isinstance(part, Iterable if holder is data else IterableDataset):
        raise DataError(
            f"{name}: shard({rank}, {size}) of {type(holder).__name__} returned "
            f"{type(part).__name__}: return data of the same kind, or None if it changes itself.",
            argument=name.partition("[")[0],
        )
    if holder is data:
        return part
    copied = copy.copy(data)
    # Past DataLoader.__setattr__, which forbids this.
    copied.__dict__["dataset"] = part
    return copied


def _call(shard: Callable[..., object], rank: int, size: int) -> object:
    try:
        names = inspect.signature(shard).parameters
    except (TypeError, ValueError):  # Compiled functions may have no signature.
        names = {}  # type: ignore[assignment]
    # That of Hugging Face's data sets has other names, in another order.
    if {"num_shards", "index"} <= set(names):
        return shard(num_shards=size, index=rank)
    return shard(rank, size)


def check_shareable(data: object, name: str, size: int, *, is_training: bool) -> None:
    """Reject data that is already divided, or whose batches are too small to be divided."""
    argument = name.partition("[")[0]
    for sampler in _samplers(data):
        if _is_distributed(sampler):
            raise DataError(
                f"{name} has a {type(sampler).__name__}, which divides the data among processes. "
                "hookloop divides each global batch itself: take a plain sampler, or "
                "shuffle=True.",
                argument=argument,
            )
    samples = batch_size_of(data)
    if is_training and isinstance(samples, int) and samples < size:
        raise DataError(
            f"{name} has batches of {samples} samples for {size} processes: batch_size counts the "
            f"samples of all processes together. Make it at least {size}, or start fewer "
            "processes.",
            argument=argument,
        )


def _samplers(data: object) -> Iterator[object]:
    """Yield the samplers of a loader, and those that they are built on."""
    waiting, seen = [data], set()
    while waiting:
        holder = waiting.pop()
        for attribute in ("sampler", "batch_sampler"):
            found = getattr(holder, attribute, None)
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                waiting.append(found)
                yield found


def _is_distributed(sampler: object) -> bool:
    if any("DistributedSampler" in kind.__name__ for kind in type(sampler).__mro__):
        return True
    counts = [getattr(sampler, name, None) for name in ("num_replicas", "world_size")]
    return hasattr(sampler, "rank") and any(isinstance(n, int) and n > 1 for n in counts)
