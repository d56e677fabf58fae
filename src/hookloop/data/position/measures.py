"""What the position in data depends on: numbers of batches and samples, and how they change."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import cast

from torch.utils.data import BatchSampler, DataLoader

Measures = dict[str, object]


def measure(data: object) -> Measures:
    """Return what the position in some data depends on."""
    return {
        "batches": length_of(data),
        "batch_size": batch_size_of(data),
        "samples": length_of(getattr(data, "dataset", None)),
        # Not the number of workers: samples are seeded in the same way for any number of them.
        "loaded in workers": bool(getattr(data, "num_workers", 0)),
    }


def list_changes(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Describe each measure that is known from before and has changed.

    >>> list_changes({"batches": 3, "samples": 9}, {"batches": 4, "samples": 9, "batch_size": 3})
    ['batches: 3 -> 4']
    """
    return [
        f"{name}: {before[name]} -> {value}"
        for name, value in now.items()
        if before.get(name, value) != value
    ]


def has_another_size(before: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Return whether batches of the same samples have another size now."""
    # With another number of samples the order is another, and no position in it means anything.
    is_same_data = before.get("samples") == now["samples"]
    return is_same_data and before.get("batch_size", now["batch_size"]) != now["batch_size"]


def length_of(data: object) -> int | None:
    """Return the length of data, or None if it has none."""
    try:
        return len(data) if isinstance(data, Sized) else None
    except TypeError:  # A DataLoader over an iterable data set has __len__, but it raises.
        return None


def batch_size_of(data: object) -> int | None:
    """Return the batch size of a loader, or of its batch sampler if that is torch's own."""
    batches = getattr(data, "batch_sampler", None)
    size = batches.batch_size if type(batches) is BatchSampler else None
    return size or getattr(data, "batch_size", None)


def sizes_of(data: object) -> tuple[int, int]:
    """Return the samples of a batch, and of a pass, of a loader with one of torch's samplers."""
    batches = cast("BatchSampler", cast("DataLoader[object]", data).batch_sampler)
    return batches.batch_size, len(cast("Sized", batches.sampler))


def batches_after(data: object, samples: int, limit: int | None = None) -> int:
    """Return how many batches are left of a pass after so many samples, within a limit of it."""
    size, length = sizes_of(data)
    batches = cast("BatchSampler", cast("DataLoader[object]", data).batch_sampler)
    left = (length - samples) // size if batches.drop_last else -(-(length - samples) // size)
    return left if limit is None else max(0, min(left, limit - samples // size))


def samples_of_batches(state: Mapping[str, object], measures: Mapping[str, object]) -> int | None:
    """Return the position in samples of a checkpoint that counts batches, as version 0.2 did."""
    position, size, length = state["position"], measures.get("batch_size"), measures.get("samples")
    if not (isinstance(position, int) and isinstance(size, int) and isinstance(length, int)):
        return None
    return min(position * size, length)
