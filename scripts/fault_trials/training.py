"""The training that every trial disturbs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from hookloop import Hook, Trainer
from hookloop.hooks import AverageWeights, SaveCheckpoint, StopOnPlateau, WriteMetrics


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Samples with noise from all three generators."""

    def __init__(self, count: int) -> None:
        self.inputs = torch.randn(count, 16, generator=torch.Generator().manual_seed(count))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Return a sample that is never the same twice."""
        noise = torch.rand(16) + random.random() + np.random.rand()
        return self.inputs[index] + noise, self.inputs[index].sum(0, keepdim=True)


@dataclass(frozen=True)
class Size:
    """The length of the training and the number of kills."""

    epochs: int
    kills: int
    patience: int = 4


FULL = Size(epochs=60, kills=100)


SMALL = Size(epochs=5, kills=6)


def make_trainer(run_dir: Path, size: Size, **options: object) -> Trainer:
    """Build the training that the trials disturb; it resumes if there is a checkpoint."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    persistent = bool(options.pop("persistent", False))
    model = nn.Sequential(
        nn.Linear(16, 32), nn.Dropout(0.3), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    directory = cast("Path | None", options.pop("directory", None))
    save = options.pop("save", SaveCheckpoint(1, keep=2, best="val/loss", directory=directory))
    hooks = [
        AverageWeights(momentum=0.05),
        StopOnPlateau("val/loss", patience=size.patience, min_delta=0.05),
        *options.pop("hooks", ()),  # type: ignore[misc]
    ]
    return Trainer(
        model,
        train_data=DataLoader(
            Noisy(80), batch_size=8, shuffle=True, num_workers=2, persistent_workers=persistent
        ),
        val_data=DataLoader(Noisy(16), batch_size=8),
        loss=nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999),
        max_epochs=size.epochs,
        max_iters=cast("int | None", options.pop("end", None)),
        hooks=hooks,
        default_hooks={
            "console": None,
            "checkpoint": cast("Hook", save),
            "metrics": WriteMetrics(every=1),
        },
        run_dir=run_dir,
        resume="auto",
        seed=7,
        device="cpu",
        **options,  # type: ignore[arg-type]
    )
