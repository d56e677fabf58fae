"""The 442 diabetes patients that come with scikit-learn, in folds. Nothing is downloaded."""

from __future__ import annotations

from typing import Literal

import torch
from sklearn.datasets import load_diabetes
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

FOLDS = 5


def patients_loader(
    split: Literal["train", "val"], *, fold: int = 0, batch_size: int = 32, seed: int = 0
) -> DataLoader[tuple[Tensor, ...]]:
    """Return the patients of one fold (``val``) or of the others (``train``).

    Inputs and targets are scaled by the mean and deviation of the training patients alone, so that
    no fold knows anything of the one that it is tested with.
    """
    bunch = load_diabetes(scaled=False)
    inputs = torch.tensor(bunch.data, dtype=torch.float32)
    targets = torch.tensor(bunch.target, dtype=torch.float32)
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    held_out = torch.arange(len(inputs)) % FOLDS == fold
    train, val = order[~held_out], order[held_out]
    chosen = train if split == "train" else val
    inputs = (inputs - inputs[train].mean(0)) / inputs[train].std(0)
    targets = (targets - targets[train].mean()) / targets[train].std()
    data = TensorDataset(inputs[chosen], targets[chosen])
    return DataLoader(data, batch_size=batch_size, shuffle=split == "train")


class Regressor(nn.Module):
    """A small network from ten measurements to one number."""

    def __init__(self, width: int = 32, dropout: float = 0.3) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(10, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 1)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return one number per patient."""
        output: Tensor = self.layers(inputs).squeeze(1)
        return output
