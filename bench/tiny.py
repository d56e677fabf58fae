"""The work that every engine is given: a tiny model, so that the engine is what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

LR = 1e-3
BATCH = 8
LOG_EVERY = 50
EMA_SHARE = 0.0002
DECAY_EVERY = 1000
"""Iterations from one step of the learning rate to the next."""


class PlainLoader(DataLoader[list[Tensor]]):
    """A DataLoader like any other, of a type that hookloop's fast path does not know."""


class Perceptron(nn.Module):
    """16-16-1, and something to be told when a forward pass begins."""

    def __init__(self, told: Callable[[], object]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
        self._told = told

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the output."""
        self._told()
        output: Tensor = self.layers(inputs)
        return output


@dataclass(frozen=True)
class Case:
    """What is done in an iteration besides the update.

    Attributes:
        name: How tables call it.
        everyday: The loss to a file every 50 iterations, a scheduler step and an iteration timer in
            each, a checkpoint at the end.
        ema: An exponential moving average of the weights, in each iteration.
        idle: Hooks that do nothing at the points of an iteration.
        empty: Hooks with an empty method after each iteration.
        fast: Whether the batches may be made the short way.
    """

    name: str
    everyday: bool = False
    ema: bool = False
    idle: int = 0
    empty: int = 0
    fast: bool = False


@dataclass(frozen=True)
class Work:
    """One training for one engine.

    Attributes:
        case: What is done.
        model: The model to train; its weights are compared at the end.
        iterations: How many.
        data: Samples and targets.
        folder: Where files go.
        kept: The weights at the end, from an engine that puts others in their place.
    """

    case: Case
    model: Perceptron
    iterations: int
    data: TensorDataset
    folder: Path
    kept: dict[str, Tensor] = field(default_factory=dict)

    def keep_weights(self) -> None:
        """Keep the weights as they are now."""
        self.kept.update({name: one.clone() for name, one in self.model.state_dict().items()})

    def loader(self) -> DataLoader[list[Tensor]]:
        """Return the batches, in order."""
        kind = DataLoader if self.case.fast else PlainLoader
        return kind(self.data, batch_size=BATCH)  # type: ignore[arg-type]

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.model.parameters(), lr=LR)

    def schedule(self, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.StepLR:
        """Return what the everyday set steps in each iteration."""
        return torch.optim.lr_scheduler.StepLR(optimizer, DECAY_EVERY, gamma=0.9)


def make_data(iterations: int) -> TensorDataset:
    """Make as many samples as a training needs."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(iterations * BATCH, 16, generator=generator)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def parameters(model: nn.Module) -> Iterator[Tensor]:
    """Yield the weights without their gradients."""
    return (one.detach() for one in model.parameters())
