"""``mmengine.model``: models that are averages of another."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn


class BaseAveragedModel(nn.Module):
    """A copy of a model that follows it.

    The first update copies, later ones average, every ``interval``-th.

    Args:
        model: The model to follow.
        interval: Calls from one update to the next.
        device: Where the copy is kept.
        update_buffers: Whether buffers are averaged too, or left as they are.
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
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.interval = interval
        if device is not None:
            self.module.to(device)
        self.register_buffer("steps", torch.tensor(0, dtype=torch.long, device=device))
        self.update_buffers = update_buffers
        state = self.module.state_dict() if update_buffers else dict(self.module.named_parameters())
        self.avg_parameters = state

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        """Change the average in place."""
        raise NotImplementedError

    def forward(self, *args: object, **kwargs: object) -> object:
        """Use the average."""
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Follow the model one step."""
        source = cast(
            "dict[str, Tensor]",
            model.state_dict() if self.update_buffers else dict(model.named_parameters()),
        )
        steps = int(self.steps)
        for name, average in self.avg_parameters.items():
            new = source[name].to(average.device)
            if steps == 0:
                average.copy_(new)
            elif steps % self.interval == 0 and average.dtype.is_floating_point:
                self.avg_func(average, new, steps)
        if not self.update_buffers:
            theirs = dict(model.named_buffers())
            for name, buffer in self.module.named_buffers():
                buffer.copy_(theirs[name].to(buffer.device))
        self.steps += 1


class StochasticWeightAverage(BaseAveragedModel):
    """The plain mean."""

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        averaged_param.add_((source_param - averaged_param) / (steps // self.interval + 1))


class ExponentialMovingAverage(BaseAveragedModel):
    """The exponential moving average; ``momentum`` is the share of the new weights."""

    def __init__(self, model: nn.Module, momentum: float = 0.0002, **kwargs: object) -> None:
        super().__init__(model, **kwargs)  # type: ignore[arg-type]
        if not 0.0 < momentum < 1.0:
            raise AssertionError(f"momentum must be in range (0.0, 1.0) but got {momentum}")
        self.momentum = momentum

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: int) -> None:
        averaged_param.lerp_(source_param, self.momentum)


class MomentumAnnealingEMA(ExponentialMovingAverage):
    """The same, with a share that shrinks to ``momentum``: ``gamma / (gamma + steps)``."""

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
