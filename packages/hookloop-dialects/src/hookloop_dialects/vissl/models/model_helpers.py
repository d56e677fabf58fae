"""``vissl.models.model_helpers``: what hooks of VISSL use of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


def get_no_ddp_model(model: nn.Module) -> nn.Module:
    """Return the model inside DistributedDataParallel, or the model itself."""
    return cast("nn.Module", model.module) if isinstance(model, DistributedDataParallel) else model


def model_output_has_nan(model_output: Any) -> bool:  # noqa: ANN401 - tensors in containers
    """Return whether a tensor among the outputs has NaN or infinity."""
    if isinstance(model_output, Mapping):
        return any(map(model_output_has_nan, model_output.values()))
    if isinstance(model_output, list | tuple):
        return any(map(model_output_has_nan, model_output))
    return isinstance(model_output, Tensor) and not bool(model_output.isfinite().all())
