"""`layer_flops`: the operations of one layer, counted as ClassyVision does."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOLING = (nn.AvgPool2d, nn.MaxPool2d, nn.AvgPool3d, nn.MaxPool3d)
_ADAPTIVE = (nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)


class ClassyProfilerError(Exception):
    """A model cannot be profiled."""


class ClassyProfilerNotImplementedError(ClassyProfilerError, NotImplementedError):
    """The cost of a layer is unknown; hook files catch it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(f"the cost of {module} is unknown; give it a method flops(self, x)")


def layer_flops(layer: Any, inputs: Sequence[Any], output: Any) -> int:  # noqa: ANN401 - any layer
    """Return the operations of a layer in one call.

    Args:
        layer: The layer.
        inputs: Its arguments.
        output: What it returned.

    Raises:
        ClassyProfilerNotImplementedError: If it has parameters and is of no known kind.
    """
    if hasattr(layer, "flops"):
        return int(layer.flops(*inputs))
    given = inputs[0] if inputs else None
    if isinstance(layer, nn.Linear) and isinstance(given, Tensor):
        rows = given.numel() // given.shape[-1]
        return rows * sum(value.numel() for value in layer.parameters())
    if isinstance(layer, _CONVOLUTIONS):
        per_number = layer.in_channels // layer.groups * prod(layer.kernel_size)
        return int(output.numel() * per_number)
    if isinstance(layer, (_BatchNorm, nn.LayerNorm)) and isinstance(given, Tensor):
        return 2 * given.numel()
    if isinstance(layer, (*_POOLING, *_ADAPTIVE)) and isinstance(given, Tensor):
        return int(output.numel() * _window(layer, given, output))
    if any(True for _ in layer.parameters()):
        raise ClassyProfilerNotImplementedError(layer)
    # Functions of single numbers cost one each. What is left only moves numbers.
    is_activation = type(layer).__module__ == nn.ReLU.__module__
    return given.numel() if is_activation and isinstance(given, Tensor) else 0


def _window(layer: Any, given: Tensor, output: Tensor) -> int:  # noqa: ANN401 - a kind of pooling
    """Return how many numbers a layer combines in one."""
    sizes = output.ndim - 2
    if isinstance(layer, _ADAPTIVE):
        pairs = zip(given.shape[2:], output.shape[2:], strict=True)
        return prod(before - after + 1 for before, after in pairs)
    kernel = layer.kernel_size
    return int(kernel**sizes if isinstance(kernel, int) else prod(kernel))
