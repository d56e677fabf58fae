"""``vissl.models.model_helpers``: what hooks of VISSL use of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


def get_no_ddp_model(model: nn.Module) -> nn.Module:
    """Return the model inside DistributedDataParallel, or the model itself."""
    return cast("nn.Module", model.module) if isinstance(model, DistributedDataParallel) else model


def is_feature_extractor_model(model_config: Mapping[str, Any]) -> bool:
    """Return whether a config asks for features of a frozen trunk."""
    settings = model_config.get("FEATURE_EVAL_SETTINGS", {})
    return bool(settings.get("EVAL_MODE_ON") and settings.get("FREEZE_TRUNK_ONLY"))


def model_output_has_nan(model_output: Any) -> bool:  # noqa: ANN401 - tensors in containers
    """Return whether a tensor among the outputs has NaN or infinity."""
    if isinstance(model_output, Mapping):
        return any(map(model_output_has_nan, model_output.values()))
    if isinstance(model_output, list | tuple):
        return any(map(model_output_has_nan, model_output))
    return isinstance(model_output, Tensor) and not bool(model_output.isfinite().all())


class Identity(nn.Module):
    """Returns its input."""

    def __init__(self, args: object = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class Flatten(nn.Module):
    """Makes one dimension of all from ``dim`` on."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, feat: Tensor) -> Tensor:
        """Return the input with fewer dimensions."""
        return feat.flatten(self.dim)
