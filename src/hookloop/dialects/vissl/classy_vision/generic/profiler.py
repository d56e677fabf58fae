"""``classy_vision.generic.profiler``: the size and cost of a model."""

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
    """A layer whose cost is unknown; hook files catch it, and nothing here raises it."""


def count_params(model: nn.Module) -> int:
    """Return the number of parameters that are trained."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def compute_flops(model: nn.Module, input_shape: Sequence[int] = (3, 224, 224)) -> int:
    """Return the multiply-adds of a forward pass of one sample."""
    counter = FlopCounterMode(display=False)
    with counter:
        _forward(model, input_shape)
    # torch counts a multiplication and its addition as two; ClassyVision counts them as one.
    return counter.get_total_flops() // 2


def compute_activations(model: nn.Module, input_shape: Sequence[int] = (3, 224, 224)) -> int:
    """Return how many numbers the convolutions compute for one sample."""
    count = 0

    def add(module: nn.Module, inputs: object, output: Tensor) -> None:
        nonlocal count
        count += output.numel()

    handles = [
        module.register_forward_hook(add)
        for module in model.modules()
        if isinstance(module, _CONVOLUTIONS)
    ]
    try:
        _forward(model, input_shape)
    finally:
        for handle in handles:
            handle.remove()
    return count


@torch.no_grad()
def _forward(model: nn.Module, input_shape: Sequence[int]) -> None:
    # In evaluation mode, so that batch norm statistics and random numbers are left alone.
    was_training = model.training
    first = next(model.parameters(), torch.empty(0))
    model.eval()
    try:
        model(torch.zeros(1, *input_shape, device=first.device, dtype=first.dtype))
    finally:
        model.train(was_training)
