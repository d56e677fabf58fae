"""``classy_vision.generic.profiler``: the size and cost of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import profiler

from hookloop_dialects.vissl.classy_vision.generic.layer_costs import (
    ClassyProfilerError,
    ClassyProfilerNotImplementedError,
    layer_flops,
)
from hookloop_dialects.vissl.classy_vision.generic.modes import eval_model, is_leaf
from hookloop_dialects.vissl.classy_vision.generic.transfer import get_model_dummy_input

__all__ = [
    "ClassyProfilerError",
    "ClassyProfilerNotImplementedError",
    "compute_activations",
    "compute_flops",
    "count_params",
    "profile",
    "summarize_profiler_info",
]

_COUNTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def profile(
    model: nn.Module,
    batchsize_per_replica: int = 32,
    input_shape: Any = (3, 224, 224),  # noqa: ANN401 - numbers, or a mapping of them
    use_nvprof: bool = False,
    input_key: str | list[str] | None = None,
) -> profiler.profile:
    """Return the profile of a forward pass in evaluation mode.

    Args:
        model: The model.
        batchsize_per_replica: Number of samples.
        input_shape: The shape of one sample.
        use_nvprof: Rejected, as in ClassyVision.
        input_key: The key under which the model looks for its input.
    """
    if use_nvprof:
        raise ClassyProfilerError("A model cannot be profiled with nvprof.")
    example = get_model_dummy_input(model, input_shape, input_key, batchsize_per_replica)
    with eval_model(model), torch.no_grad():
        model(example)  # The first pass allocates memory, which is not the model's time.
        device = "cuda" if torch.cuda.is_available() else None
        found = profiler.profile(use_device=device)
        with found:
            model(example)
    return found


def summarize_profiler_info(prof: profiler.profile) -> str:
    """Return a table of the times per operator, the slowest first."""
    rows = [
        (
            item.cpu_time_total / 1000,
            # torch has renamed it.
            getattr(item, "device_time_total", getattr(item, "cuda_time_total", 0)) / 1000,
            item.key,
        )
        for item in prof.key_averages()  # type: ignore[no-untyped-call]
    ]
    lines = [f"{'Key':>20}\tCPU Time\tCUDA Time"]
    lines += [f"{key:>20}\t{cpu:.5f} ms\t{cuda:.5f} ms" for cpu, cuda, key in sorted(rows)[::-1]]
    return "\n" + "\n".join(lines) + "\n"


def count_params(model: nn.Module) -> int:
    """Return the number of parameters, those that are frozen too."""
    return sum(value.numel() for value in model.parameters())


def compute_flops(
    model: nn.Module,
    input_shape: Any = (3, 224, 224),  # noqa: ANN401 - numbers, or a mapping of them
    input_key: str | list[str] | None = None,
) -> int:
    """Return the operations of a forward pass of one sample, as ClassyVision counts them.

    A multiplication with its addition is one. Layers count, and functions that a model calls do
    not. A layer with a method ``flops`` counts itself.

    Raises:
        ClassyProfilerNotImplementedError: If the cost of a layer with parameters is unknown.
    """
    return _count(model, "flops", layer_flops, input_shape, input_key)


def compute_activations(
    model: nn.Module,
    input_shape: Any = (3, 224, 224),  # noqa: ANN401 - numbers, or a mapping of them
    input_key: str | list[str] | None = None,
) -> int:
    """Return how many numbers convolutions and linear layers compute for one sample.

    A layer with a method ``activations`` counts itself.
    """
    return _count(model, "activations", _layer_activations, input_shape, input_key)


def _layer_activations(layer: Any, inputs: Sequence[Any], output: Any) -> int:  # noqa: ANN401 - any layer
    if hasattr(layer, "activations"):
        return int(layer.activations(output, *inputs))
    return output.numel() if isinstance(layer, _COUNTED) else 0


def _count(
    model: nn.Module,
    method: str,
    count: Callable[[Any, Sequence[Any], Any], int],
    shape: Any,  # noqa: ANN401 - numbers, or a mapping of them
    key: str | list[str] | None,
) -> int:
    """Add up what the layers of a model count in a forward pass."""
    total = 0

    def add(layer: nn.Module, inputs: Sequence[Any], output: object) -> None:
        nonlocal total
        total += count(layer, inputs, output)

    handles = [layer.register_forward_hook(add) for layer in _layers(model, method)]
    try:
        _forward(model, shape, key)
    finally:
        for handle in handles:
            handle.remove()
    return total


def _layers(model: nn.Module, method: str) -> list[nn.Module]:
    """Return the modules without children, and those that count themselves and their children."""
    if is_leaf(model) or hasattr(model, method):
        return [model]
    found = [layer for child in model.children() for layer in _layers(child, method)]
    return list(dict.fromkeys(found))  # A module may be reached on several ways.


@torch.no_grad()
def _forward(model: nn.Module, shape: Any, key: str | list[str] | None) -> None:  # noqa: ANN401 - as above
    # In evaluation mode, so that batch norm statistics and random numbers are left alone.
    with eval_model(model):
        model(get_model_dummy_input(model, shape, key))
