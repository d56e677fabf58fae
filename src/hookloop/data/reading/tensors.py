"""Read batches of tensors that are already in memory, without a `DataLoader`.

A plain `DataLoader` over a `TensorDataset` picks sample after sample and stacks them again.
Indexing the tensors with the whole batch gives the same bits in the same order, and draws the same
random numbers, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate

Gather = Callable[[Sequence[int]], list[Tensor]]


def make_gather(loader: DataLoader[object]) -> Gather | None:
    """Return a function that makes a batch from indices, or None if the loader does more."""
    # Exact types and the default collate_fn: a subclass may do anything with a sample.
    plain = (
        type(loader) is DataLoader
        and loader.num_workers == 0
        and loader.batch_sampler is not None
        and loader.collate_fn is default_collate
        and not loader.pin_memory
    )
    if not plain:
        return None
    dataset, chosen = loader.dataset, None
    if type(dataset) is Subset:
        chosen = torch.as_tensor(dataset.indices)
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset:
        return None
    tensors = dataset.tensors
    if any(tensor.requires_grad or tensor.device.type != "cpu" for tensor in tensors):
        return None

    def gather(indices: Sequence[int]) -> list[Tensor]:
        rows = torch.tensor(indices)
        if chosen is not None:
            rows = chosen[rows]
        return [tensor[rows] for tensor in tensors]

    return gather


def is_drawless(dataset: object) -> bool:
    """Return whether loading a sample surely draws no random number."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset


def read_tensors(
    loader: DataLoader[object], indices: Iterator[object], gather: Gather
) -> Iterator[object]:
    """Read a pass as the loader would."""
    # A DataLoader draws a seed for workers before the order, even if it has no workers. Without
    # this draw, all later random numbers would differ from those of a plain loop.
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
    return map(gather, cast("Iterator[Sequence[int]]", indices))
