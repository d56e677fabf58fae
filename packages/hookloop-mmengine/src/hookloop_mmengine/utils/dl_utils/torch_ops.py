"""``mmengine.utils.dl_utils.torch_ops``: functions of torch whose defaults have changed."""

from __future__ import annotations

import torch
from torch import Tensor


def torch_meshgrid(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, in the order of the indices of a matrix."""
    return torch.meshgrid(*tensors, indexing="ij")
