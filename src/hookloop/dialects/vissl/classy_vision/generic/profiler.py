"""``classy_vision.generic.profiler``: the size and cost of a model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import profiler
from torch.utils.flop_counter import FlopCounterMode

from hookloop.dialects.vissl.classy_vision.generic.modes import eval_model
from hookloop.dialects.vissl.classy_vision.generic.transfer import get_model_dummy_input

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


class ClassyProfilerError(Exception):
    """A model cannot be profiled."""


class ClassyProfilerNotImplementedError(ClassyProfilerError, NotImplementedError):
    """A layer whose cost is unknown; hook files catch it, and nothing here raises it."""


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
    """Return the number of parameters that are trained."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def compute_flops(
    model: nn.Module,
    input_shape: Any = (3, 224, 224),  # noqa: ANN401 - numbers, or a mapping of them
    input_key: str | list[str] | None = None,
) -> int:
    """Return the multiply-adds of a forward pass of one sample."""
    counter = FlopCounterMode(display=False)
    with counter:
        _forward(model, input_shape, input_key)
    # torch counts a multiplication and its addition as two; ClassyVision counts them as one.
    return counter.get_total_flops() // 2


def compute_activations(
    model: nn.Module,
    input_shape: Any = (3, 224, 224),  # noqa: ANN401 - numbers, or a mapping of them
    input_key: str | list[str] | None = None,
) -> int:
    """Return how many numbers convolutions and linear layers compute for one sample."""
    count = 0

    def add(module: nn.Module, inputs: object, output: Tensor) -> None:
        nonlocal count
        count += output.numel()

    handles = [
        module.register_forward_hook(add)
        for module in model.modules()
        if isinstance(module, _COUNTED)
    ]
    try:
        _forward(model, input_shape, input_key)
    finally:
        for handle in handles:
            handle.remove()
    return count


@torch.no_grad()
def _forward(model: nn.Module, shape: Any, key: str | list[str] | None) -> None:  # noqa: ANN401 - as above
    # In evaluation mode, so that batch norm statistics and random numbers are left alone.
    with eval_model(model):
        model(get_model_dummy_input(model, shape, key))
