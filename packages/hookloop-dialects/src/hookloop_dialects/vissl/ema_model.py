"""`ModelEmaV2`: the average of the weights that VISSL keeps in ``task.ema_model``."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn


class ModelEmaV2(nn.Module):
    """An exponential moving average of a model, buffers included.

    Args:
        model: The model.
        decay: Share of the old average in an update.
        device: Where to keep the average; None for where the model is.

    Attributes:
        module: A copy of the model with the averaged weights, in evaluation mode.
    """

    def __init__(
        self, model: nn.Module, decay: float = 0.9999, device: str | torch.device | None = None
    ) -> None:
        super().__init__()
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        first = next(model.parameters(), torch.empty(0))
        self.device = first.device if device is None else torch.device(device)
        self.module.to(self.device)

    def update(self, model: nn.Module) -> None:
        """Move the average towards the weights of a model."""

        def towards(own: Tensor, new: Tensor) -> Tensor:
            # As in VISSL: counters of batch norm, and half precision, are copied.
            return own.lerp(new, 1 - self.decay) if own.dtype == torch.float32 else new

        self._change(model, towards)

    def set(self, model: nn.Module) -> None:
        """Copy the weights of a model."""
        self._change(model, lambda own, new: new)

    @torch.no_grad()
    def _change(self, model: nn.Module, new_value: Callable[[Tensor, Tensor], Tensor]) -> None:
        theirs = model.state_dict()
        for name, own in self.module.state_dict().items():
            own.copy_(new_value(own, theirs[name].to(own.device)))
