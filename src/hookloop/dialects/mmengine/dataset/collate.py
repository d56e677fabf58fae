"""``mmengine.dataset``: from samples to a batch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch.utils.data import default_collate as torch_collate


def pseudo_collate(data_batch: Sequence[object]) -> object:
    """Transpose samples without stacking: a dict of lists, or a list of lists."""
    first = data_batch[0]
    if isinstance(first, str | bytes):
        return data_batch
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        pairs = zip(*cast("Sequence[Sequence[object]]", data_batch), strict=True)
        return type(first)(*(pseudo_collate(one) for one in pairs))  # type: ignore[arg-type]
    if isinstance(first, Sequence):
        transposed = zip(*cast("Sequence[Sequence[object]]", data_batch), strict=True)
        listed = [pseudo_collate(one) for one in transposed]
        return listed if isinstance(first, tuple) else type(first)(listed)  # type: ignore[call-arg]
    if isinstance(first, Mapping):
        samples = cast("Sequence[Mapping[str, object]]", data_batch)
        return {key: pseudo_collate([one[key] for one in samples]) for key in first}
    return list(data_batch)


def default_collate(data_batch: Sequence[object]) -> object:
    """Stack samples as torch does; what cannot be stacked stays a list."""
    first = data_batch[0]
    if isinstance(first, Mapping):
        samples = cast("Sequence[Mapping[str, object]]", data_batch)
        return {key: default_collate([one[key] for one in samples]) for key in first}
    if isinstance(first, torch.Tensor | int | float | np.ndarray | np.number):
        return torch_collate(list(data_batch))
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        transposed = zip(*cast("Sequence[Sequence[object]]", data_batch), strict=True)
        return [default_collate(one) for one in transposed]
    return list(data_batch)


def worker_init_fn(
    worker_id: int, num_workers: int, rank: int, seed: int, disable_subprocess_warning: bool = False
) -> None:
    """Seed the generators of a worker."""
    number = num_workers * rank + worker_id + seed
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
