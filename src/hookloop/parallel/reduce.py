"""Combine numbers of all ranks."""

from __future__ import annotations

from collections.abc import Iterable

import torch.distributed
from torch import Tensor


def mean_over_ranks(tensors: Iterable[Tensor]) -> None:
    """Replace tensors, in place, by their mean over all ranks; a single process changes nothing."""
    # Some builds of torch have no distributed package, and a single process never sets it up.
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return
    size = torch.distributed.get_world_size()
    with torch.no_grad():
        for tensor in tensors:
            # Summed and divided, because not every backend (gloo) can compute a mean.
            torch.distributed.all_reduce(tensor)
            tensor.div_(size)
