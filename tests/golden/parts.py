"""Models and data that the configurations share: small, and sensitive to every random number."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    TensorDataset,
)

mse = nn.functional.mse_loss


def network(seed: int = 0, drop: float = 0.2, *, norm: bool = False) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(4, 8),
        nn.BatchNorm1d(8) if norm else nn.Identity(),
        nn.Tanh(),
        nn.Dropout(drop),
        nn.Linear(8, 1),
    )


def tensors(count: int = 24, seed: int = 1) -> TensorDataset:
    inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, inputs.sum(1, keepdim=True))


def loader(count: int = 24, batch_size: int = 4, seed: int = 1, **options) -> DataLoader:
    return DataLoader(tensors(count, seed), batch_size=batch_size, **options)


def batches(count: int = 24, batch_size: int = 4, seed: int = 1) -> list:
    return [list(batch) for batch in loader(count, batch_size, seed)]


class Noisy(Dataset):
    """Draws from Python's, NumPy's and torch's generator for each sample."""

    def __init__(self, count: int = 20, seed: int = 1) -> None:
        self.inputs, self.targets = tensors(count, seed).tensors

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple:
        noise = torch.rand(4) + np.random.rand() + random.gauss(0, 1)
        return self.inputs[index] + 0.1 * noise.float(), self.targets[index]


class Endless(IterableDataset):
    """An iterable of unknown length, which draws."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        for _ in range(self.count):
            inputs = torch.rand(4)
            yield inputs, inputs.sum().view(1)


class Reacting(Sampler):
    """Draws each index as it goes, with weights that the training changes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.weights = torch.ones(count)

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield int(torch.multinomial(self.weights, 1))


class DrawnBatches(Sampler):
    """A batch sampler that draws its order when the pass begins."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count // self.size

    def __iter__(self):
        order = np.random.permutation(self.count).tolist()
        for first in range(0, self.count, self.size):
            yield order[first : first + self.size]


class Stateful:
    """A loader that keeps its own position, as those of torchdata do."""

    def __init__(self, count: int = 24, batch_size: int = 4) -> None:
        self.batches = batches(count, batch_size)
        self.at = 0

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self):
        while self.at < len(self.batches):
            inputs, targets = self.batches[self.at]
            self.at += 1
            yield inputs + 0.1 * torch.randn_like(inputs), targets
        self.at = 0

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


def sgd(model: nn.Module, rate: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01)
