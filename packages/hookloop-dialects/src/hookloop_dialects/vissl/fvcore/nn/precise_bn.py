"""``fvcore.nn.precise_bn``: exact statistics of batch norm from some batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from hookloop.dialects import Moments


def get_bn_modules(model: nn.Module) -> list[_BatchNorm]:
    """Return the batch norm layers that are in training mode and keep statistics."""
    return [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.training and module.track_running_stats
    ]


@torch.no_grad()
def update_bn_stats(
    model: nn.Module, data_loader: Iterable[Any], num_iters: int = 200, progress: str | None = None
) -> None:
    """Replace the statistics of batch norm by the exact ones of some batches.

    Args:
        model: The model, in training mode.
        data_loader: Its inputs.
        num_iters: How many of them to use; there must be so many.
        progress: Ignored: no bar is shown.
    """
    moments = {layer: Moments() for layer in get_bn_modules(model)}
    if not moments:
        return

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        moments[layer].add(inputs[0])  # type: ignore[index]

    handles = [layer.register_forward_pre_hook(look) for layer in moments]
    batches, count = iter(data_loader), 0
    try:
        while count < num_iters and (inputs := next(batches, _END)) is not _END:
            model(inputs)
            count += 1
    finally:
        for handle in handles:
            handle.remove()
    if count < num_iters:
        raise AssertionError(f"update_bn_stats wants {num_iters} batches, there are {count}")
    for layer, seen in moments.items():
        if seen.count:  # A layer may be unused.
            number, mean, squares = seen.parts()
            layer.running_mean.copy_(mean)  # type: ignore[union-attr]
            layer.running_var.copy_(squares / number)  # type: ignore[union-attr]


_END = object()
