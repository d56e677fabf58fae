"""The work that every engine does: a tiny model, so that the cost of the engine shows."""

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
"""Iterations between two steps of the learning rate."""


class PlainLoader(DataLoader[list[Tensor]]):
    """A plain DataLoader, of a type for which hookloop does not take its fast path."""


class Perceptron(nn.Module):
    """Layers of 16, 16 and 1 units, and a function to call when a forward pass begins."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
        self._notify = notify

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the output."""
        self._notify()
        output: Tensor = self.layers(inputs)
        return output


@dataclass(frozen=True)
class Case:
    """What an iteration does in addition to the update.

    Attributes:
        name: Its name in tables.
        everyday: The loss to a file every 50 iterations, a scheduler step and an iteration timer in
            each, a checkpoint at the end.
        ema: An exponential moving average of the weights, in each iteration.
        idle: How many hooks without a method at the points of an iteration.
        empty: How many hooks with an empty method after each iteration.
        fast: Whether hookloop may take its fast path for the batches.
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
        iterations: How many iterations to train.
        data: Samples and targets.
        folder: The directory for files.
        kept: The trained weights, from an engine that replaces them at the end.
    """

    case: Case
    model: Perceptron
    iterations: int
    data: TensorDataset
    folder: Path
    kept: dict[str, Tensor] = field(default_factory=dict)

    def keep_weights(self) -> None:
        """Keep the current weights."""
        self.kept.update({name: tensor.clone() for name, tensor in self.model.state_dict().items()})

    def loader(self) -> DataLoader[list[Tensor]]:
        """Return the batches, in order."""
        kind = DataLoader if self.case.fast else PlainLoader
        return kind(self.data, batch_size=BATCH)  # type: ignore[arg-type]

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.model.parameters(), lr=LR)

    def schedule(self, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.StepLR:
        """Return the schedule that the everyday set steps in each iteration."""
        return torch.optim.lr_scheduler.StepLR(optimizer, DECAY_EVERY, gamma=0.9)


def make_data(iterations: int) -> TensorDataset:
    """Make as many samples as a training needs."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(iterations * BATCH, 16, generator=generator)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def parameters(model: nn.Module) -> Iterator[Tensor]:
    """Yield the weights without their gradients."""
    return (parameter.detach() for parameter in model.parameters())
