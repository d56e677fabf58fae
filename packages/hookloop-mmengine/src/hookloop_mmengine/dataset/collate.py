"""``mmengine.dataset``: functions that make a batch of samples."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch.utils.data import default_collate as torch_collate


def pseudo_collate(data_batch: Sequence[object]) -> object:
    """Transpose samples without stacking them: a dict of lists, or a list of lists."""
    first = data_batch[0]
    if isinstance(first, str | bytes):
        # Text is a sequence, too, but is not taken apart.
        return data_batch
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(pseudo_collate(values) for values in _transpose(data_batch)))  # type: ignore[arg-type]
    if isinstance(first, Sequence):
        # MMEngine turns tuples into lists and keeps other sequence types.
        listed = [pseudo_collate(values) for values in _transpose(data_batch)]
        return listed if isinstance(first, tuple) else type(first)(listed)  # type: ignore[call-arg]
    if isinstance(first, Mapping):
        samples = cast("Sequence[Mapping[str, object]]", data_batch)
        return {key: pseudo_collate([sample[key] for sample in samples]) for key in first}
    return list(data_batch)


def default_collate(data_batch: Sequence[object]) -> object:
    """Stack samples as torch does; values that cannot be stacked stay a list."""
    first = data_batch[0]
    if isinstance(first, Mapping):
        samples = cast("Sequence[Mapping[str, object]]", data_batch)
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, torch.Tensor | int | float | np.ndarray | np.number):
        return torch_collate(list(data_batch))
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        return [default_collate(values) for values in _transpose(data_batch)]
    return list(data_batch)


def worker_init_fn(
    worker_id: int, num_workers: int, rank: int, seed: int, disable_subprocess_warning: bool = False
) -> None:
    """Seed the generators of a worker, differently in each worker of each process."""
    worker_seed = num_workers * rank + worker_id + seed
    random.seed(worker_seed)
    np.random.seed(worker_seed)
    torch.manual_seed(worker_seed)
    if disable_subprocess_warning and worker_id != 0:
        warnings.simplefilter("ignore")


def _transpose(batch: Sequence[object]) -> list[tuple[object, ...]]:
    rows = cast("Sequence[Sequence[object]]", batch)
    if any(len(row) != len(rows[0]) for row in rows):
        raise RuntimeError("each element in list of batch should be of equal size")
    return list(zip(*rows, strict=True))
