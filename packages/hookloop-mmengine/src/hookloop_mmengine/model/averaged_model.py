"""``mmengine.model``: models whose weights are averages of another model's."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn


class BaseAveragedModel(nn.Module):
    """A copy of a model that averages its weights.

    The first update copies the weights; of the later ones, every ``interval``-th averages.

    Args:
        model: The model.
        interval: Calls between two averages.
        device: The device of the copy.
        update_buffers: Whether buffers are averaged too; otherwise they are copied.
    """

    steps: Tensor

    def __init__(
        self,
        model: nn.Module,
        interval: int = 1,
        device: torch.device | str | None = None,
        update_buffers: bool = False,
    ) -> None:
        super().__init__()
        # A deep copy, because the average has its own weights from the first update on.
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.interval = interval
        if device is not None:
            self.module.to(device)
        # A buffer, so that it is saved and restored with the weights.
        self.register_buffer("steps", torch.tensor(0, dtype=torch.long, device=device))
        self.update_buffers = update_buffers
        state = self.module.state_dict() if update_buffers else dict(self.module.named_parameters())
        # These are the tensors of the module itself, so that an update in place is enough.
        self.avg_parameters = state

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        """Update the average in place."""
        raise NotImplementedError

    def forward(self, *args: object, **kwargs: object) -> object:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Update the average with the weights of the model."""
        source = cast(
            "dict[str, Tensor]",
            model.state_dict() if self.update_buffers else dict(model.named_parameters()),
        )
        steps = int(self.steps)
        for name, average in self.avg_parameters.items():
            # The average may be on another device than the model.
            new = source[name].to(average.device)
            if steps == 0:
                average.copy_(new)
            # Integer buffers, such as counters of batches, have no mean.
            elif steps % self.interval == 0 and average.dtype.is_floating_point:
                self.avg_func(average, new, steps)
        if not self.update_buffers:
            # Running statistics of norms are averages already.
            sources = dict(model.named_buffers())
            for name, buffer in self.module.named_buffers():
                buffer.copy_(sources[name].to(buffer.device))
        self.steps += 1


class StochasticWeightAverage(BaseAveragedModel):
    """The mean of all weights so far."""

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        averaged_param.add_((source_param - averaged_param) / (steps // self.interval + 1))


class ExponentialMovingAverage(BaseAveragedModel):
    """The exponential moving average; ``momentum`` is the weight of the new values."""

    def __init__(self, model: nn.Module, momentum: float = 0.0002, **kwargs: object) -> None:
        super().__init__(model, **kwargs)  # type: ignore[arg-type]
        if not 0.0 < momentum < 1.0:
            raise AssertionError(f"momentum must be in range (0.0, 1.0) but got {momentum}")
        self.momentum = momentum

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        averaged_param.lerp_(source_param, self.momentum)


class MomentumAnnealingEMA(ExponentialMovingAverage):
    """An exponential average whose weight ``gamma / (gamma + steps)`` shrinks to ``momentum``."""

    def __init__(
        self, model: nn.Module, momentum: float = 0.0002, gamma: int = 100, **kwargs: object
    ) -> None:
        super().__init__(model, momentum, **kwargs)
        if gamma <= 0:
            raise AssertionError(f"gamma must be greater than 0, but got {gamma}")
        self.gamma = gamma

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        share = max(self.momentum, self.gamma / (self.gamma + steps))
        averaged_param.lerp_(source_param, share)
