"""``classy_vision.generic.profiler``: how large a model is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

__all__ = [
    "ClassyProfilerNotImplementedError",
    "compute_activations",
    "compute_flops",
    "count_params",
]

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d)


class ClassyProfilerNotImplementedError(NotImplementedError):
    """A layer whose cost cannot be told; nothing here raises it."""


def count_params(model: nn.Module) -> int:
    """Count the parameters that are trained."""
    return sum(one.numel() for one in model.parameters() if one.requires_grad)


def compute_flops(model: nn.Module, input_shape: Sequence[int] = (3, 224, 224)) -> int:
    """Count the multiplications of a forward pass of one sample, each with its addition."""
    counter = FlopCounterMode(display=False)
    with counter:
        _forward(model, input_shape)
    return counter.get_total_flops() // 2


def compute_activations(model: nn.Module, input_shape: Sequence[int] = (3, 224, 224)) -> int:
    """Count the numbers that the convolutions put out for one sample."""
    count = 0

    def add(module: nn.Module, inputs: object, output: Tensor) -> None:
        nonlocal count
        count += output.numel()

    handles = [
        one.register_forward_hook(add) for one in model.modules() if isinstance(one, _CONVOLUTIONS)
    ]
    try:
        _forward(model, input_shape)
    finally:
        for handle in handles:
            handle.remove()
    return count


@torch.no_grad()
def _forward(model: nn.Module, input_shape: Sequence[int]) -> None:
    was_training = model.training
    first = next(model.parameters(), torch.empty(0))
    model.eval()
    try:
        model(torch.zeros(1, *input_shape, device=first.device, dtype=first.dtype))
    finally:
        model.train(was_training)
