"""The two sources and the model of emloop's document: images and labels in, predictions out."""

from __future__ import annotations

from typing import Literal

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

Sample = dict[str, Tensor]


class Digits(Dataset[Sample]):
    """The digits of scikit-learn; every fifth is for validation."""

    def __init__(self, stream: Literal["train", "valid"]) -> None:
        bunch = load_digits()
        fifth = torch.arange(len(bunch.target)) % 5 == 0
        own = fifth if stream == "valid" else ~fifth
        self.images = torch.tensor(bunch.images, dtype=torch.float32)[own] / 16
        self.labels = torch.tensor(bunch.target)[own]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return {"images": self.images[index], "labels": self.labels[index]}


def stream(name: Literal["train", "valid"], batch_size: int = 64) -> DataLoader[Sample]:
    """Load one stream in batches of named sources."""
    return DataLoader(Digits(name), batch_size=batch_size, shuffle=name == "train")


class Classifier(nn.Module):
    """Two layers; returns the loss and the predictions by name, for hooks to read."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)
        )

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        scores = self.layers(images)
        loss = nn.functional.cross_entropy(scores, labels)
        return {"loss": loss, "predictions": scores.argmax(1)}
