"""``mmengine.model.utils``: functions that make one of several."""

from __future__ import annotations

import math

import torch
import torch.fx
from torch import Tensor
from torch.nn import functional


def stack_batch(
    tensor_list: list[Tensor], pad_size_divisor: int = 1, pad_value: float = 0
) -> Tensor:
    """Stack tensors that are padded at their ends to one shape.

    Args:
        tensor_list: The tensors. Their first dimension, the channels, is not padded.
        pad_size_divisor: The other dimensions are padded to a multiple of it.
        pad_value: The value of the padding.

    >>> stack_batch([torch.ones(3, 4, 5), torch.ones(3, 6, 2)], 8).shape
    torch.Size([2, 3, 8, 8])
    """
    if not isinstance(tensor_list, list):
        raise AssertionError(f"Expected input type to be list, but got {type(tensor_list)}")
    if not tensor_list:
        raise AssertionError("`tensor_list` could not be an empty list")
    dimensions = [tensor.ndim for tensor in tensor_list]
    if len(set(dimensions)) > 1:
        raise AssertionError(
            f"Expected the dimensions of all tensors must be the same, but got {dimensions}"
        )
    sizes = [
        math.ceil(max(sizes) / pad_size_divisor) * pad_size_divisor
        for sizes in zip(*(tensor.shape[1:] for tensor in tensor_list), strict=True)
    ]
    padded = []
    for tensor in tensor_list:
        missing = [size - own for size, own in zip(sizes, tensor.shape[1:], strict=True)]
        # Torch counts dimensions from the last one, with a number for each of their two ends.
        ends = [number for size in reversed(missing) for number in (0, size)]
        padded.append(functional.pad(tensor, ends, value=pad_value))
    return torch.stack(padded)


def merge_dict(*args: dict[str, object]) -> dict[str, object]:
    """Return one dict with the entries of several; torch.fx does not trace into it."""
    merged: dict[str, object] = {}
    for entry in args:
        if not isinstance(entry, dict):
            raise AssertionError(f"all arguments of merge_dict should be a dict, not {type(entry)}")
        merged |= entry
    return merged


torch.fx.wrap("merge_dict")
