"""Tensors of which each rank holds a part: the DTensors of torch.

They are recognized by an attribute. torch.distributed.tensor takes long to import, and a run that
has no DTensor never imports it.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor


def is_sharded(value: object) -> bool:
    """Return whether a tensor is a DTensor."""
    return isinstance(value, Tensor) and hasattr(value, "placements")


def local_part(value: Tensor) -> Tensor:
    """Return what this rank holds of a tensor: its part of a DTensor, or all of it."""
    return cast("Tensor", value.to_local()) if is_sharded(value) else value  # type: ignore[attr-defined]


def spread(value: Tensor, like: Tensor) -> Tensor:
    """Cut a whole tensor into parts as another one is; every rank has the whole and keeps its own.

    Args:
        value: The whole tensor; one that is cut already is returned as it is.
        like: A tensor of the same shape. If it is not a DTensor, nothing is cut.
    """
    # A module can put anything into its state_dict through get_extra_state().
    if not is_sharded(like) or is_sharded(value) or not isinstance(value, Tensor):
        return value
    cut = torch.empty_like(like, dtype=value.dtype, requires_grad=False)
    # What torch's own checkpoints ask a DTensor for: the place of its part in the whole.
    (chunk,) = like.__create_chunk_list__()  # type: ignore[attr-defined]
    place = tuple(slice(o, o + s) for o, s in zip(chunk.offsets, chunk.sizes, strict=True))
    with torch.no_grad():
        local_part(cut).copy_(value[place])
    return cut
