"""Batches of ``classy_vision.generic.util``: how they move, and how large they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn


def recursive_copy_to_device(value: Any, non_blocking: bool, device: torch.device) -> Any:  # noqa: ANN401 - any batch
    """Return a batch with everything in it that can move on a device."""

    def copied(part: Any) -> Any:  # noqa: ANN401 - a part of the batch
        return recursive_copy_to_device(part, non_blocking, device)

    if isinstance(value, list | tuple):
        return type(value)(map(copied, value)) if type(value) is list else tuple(map(copied, value))
    if isinstance(value, Mapping):
        return {key: copied(part) for key, part in value.items()}
    move = getattr(value, "to", None)
    return move(device=device, non_blocking=non_blocking) if callable(move) else value


def recursive_copy_to_gpu(value: Any, non_blocking: bool = True) -> Any:  # noqa: ANN401 - any batch
    """Return a batch on the current CUDA device."""
    return recursive_copy_to_device(value, non_blocking, torch.device("cuda"))


def get_batchsize_per_replica(x: Any) -> int:  # noqa: ANN401 - any batch
    """Return the samples of a batch by the first tensor in it."""
    while isinstance(x, list | tuple | Mapping):
        if not len(x):
            raise AssertionError("the batch is empty")
        x = next(iter(x.values())) if isinstance(x, Mapping) else x[0]
    return int(x.shape[0])


def get_model_dummy_input(
    model: nn.Module,
    input_shape: Any,  # noqa: ANN401 - numbers, a list of them, or a mapping
    input_key: str | list[str] | None = None,
    batchsize: int = 1,
    non_blocking: bool = False,
) -> Any:  # noqa: ANN401 - as the model takes it
    """Return an input of zeros for a model.

    Args:
        model: The model, which says where the input belongs.
        input_shape: The shape of one sample, or a mapping of them.
        input_key: The key under which the model looks for its input; a list for several inputs.
        batchsize: Number of samples.
        non_blocking: Whether not to wait for the copy to the device.
    """
    first = next(model.parameters(), torch.empty(0))

    def zeros(shape: Any) -> torch.Tensor:  # noqa: ANN401 - numbers
        return torch.zeros(batchsize, *shape).to(first.device, non_blocking=non_blocking)

    if isinstance(input_shape, Mapping):
        return {
            key: get_model_dummy_input(model, shape, input_key, batchsize, non_blocking)
            for key, shape in input_shape.items()
        }
    if isinstance(input_key, list):
        return {key: zeros(shape) for key, shape in zip(input_key, input_shape, strict=True)}
    return {input_key: zeros(input_shape)} if input_key else zeros(input_shape)
