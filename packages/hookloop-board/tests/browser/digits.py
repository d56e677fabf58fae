"""Train the digits several times in one process, for the tests and pictures of the board.

python digits.py DIRECTORY
"""

import os
import signal
import sys
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from hookloop import Hook, Trainer
from hookloop.hooks import (
    AverageWeights,
    LogMemory,
    RecordThroughput,
    SaveCheckpoint,
    SaveConfusionMatrix,
    SavePredictions,
    StopOnPlateau,
    WriteMetrics,
)
from hookloop.writers import Histogram, Image

from data import digits_loader
from model import DigitsNet, accuracy

EPOCHS = 15 if "HOOKLOOP_SCREENSHOTS" in os.environ else 5
"""As many as a picture needs; the tests themselves need a third of them."""
LOADERS = {split: digits_loader(split) for split in ("train", "val")}


class ShowWeights(Hook):
    """Draws the first filters, a histogram of them, and the digits that were wrong."""

    def after_train_epoch(self, run):
        weights = next(run.model.parameters()).detach()
        run.emit(Histogram("weights/first", weights))

    def after_val_iter(self, run):
        images, targets = run.batch
        wrong = torch.nonzero(run.output.argmax(1) != targets).flatten()[:8].tolist()
        if wrong:
            row = torch.cat([images[index, 0] for index in wrong], dim=1)
            row = (row - row.min()) / (row.max() - row.min())
            run.emit(Image("val/wrong", row.repeat_interleave(6, 0).repeat_interleave(6, 1)))


class KillAt(Hook):
    """Ends the process as a full memory does."""

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, run):
        if run.progress.iter == self.iteration:
            os.kill(os.getpid(), signal.SIGKILL)


class StopAt(KillAt):
    def after_train_iter(self, run):
        if run.progress.iter == self.iteration:
            run.stop("stopped for the night")


def train(directory, rate, *hooks, width=8, resume=False):
    torch.manual_seed(0)
    model = DigitsNet(width)
    config = {
        "model": {"type": "DigitsNet", "width": width},
        "optimizer": {"type": "AdamW", "lr": rate},
        "max_epochs": EPOCHS,
        "test_data": {"type": "digits_loader", "split": "test"},
    }
    Trainer(
        model,
        train_data=LOADERS["train"],
        val_data=LOADERS["val"],
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        optimizer=torch.optim.AdamW(model.parameters(), lr=rate),
        default_hooks={
            "console": None,
            "metrics": WriteMetrics(every=2),
            "checkpoint": SaveCheckpoint(every="5 epochs", best="accuracy"),
        },
        hooks=[
            ShowWeights(), AverageWeights(), StopOnPlateau("val/loss", patience=50), LogMemory(),
            RecordThroughput(), *hooks,
        ],
        max_epochs=EPOCHS, run_dir=directory, seed=0, setup={"config": config}, resume=resume,
    ).train()  # fmt: skip


def main(home):
    names = [str(digit) for digit in range(10)]
    full = [SaveConfusionMatrix(class_names=names), SavePredictions(streams=["val"])]
    train(home / "digits", 0.003, *full)
    train(home / "digits-small-lr", 0.0001)
    train(home / "digits-large-lr", 0.03, width=4)
    train(home / "digits-resumed", 0.001, StopAt(EPOCHS * 8))
    train(home / "digits-resumed", 0.001, resume=True)
    child = os.fork()
    if child == 0:
        train(home / "digits-killed", 0.003, KillAt(EPOCHS * 10), width=12)
    os.waitpid(child, 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
