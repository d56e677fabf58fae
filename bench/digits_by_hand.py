"""The digits example up to its first iteration, as a script without an engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "digits"))

from data import digits_loader
from model import DigitsNet


def main() -> None:
    """Make one update."""
    torch.manual_seed(0)
    model = DigitsNet(width=32)
    train = digits_loader("train", batch_size=64, max_shift=1)
    digits_loader("val", batch_size=512)
    digits_loader("test", batch_size=512)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15 * len(train))
    loss_of = nn.CrossEntropyLoss()
    model.train()
    for images, targets in train:
        optimizer.zero_grad()
        loss_of(model(images), targets).backward()
        optimizer.step()
        schedule.step()
        os._exit(0)  # A normal exit takes time that is not part of the measurement.


if __name__ == "__main__":
    main()
