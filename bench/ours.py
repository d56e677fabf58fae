"""hookloop on the common work."""

from __future__ import annotations

from torch import nn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work
from hookloop import Hook, Run, Trainer
from hookloop.hooks import (
    AverageWeights,
    RecordTimes,
    SaveCheckpoint,
    StepSchedules,
    WriteMetrics,
)


class Idle(Hook):
    """Acts only after an epoch."""

    def after_epoch(self, run: Run) -> None:
        """Do nothing."""


class Empty(Hook):
    """Is called after each iteration, and does nothing."""

    def after_train_iter(self, run: Run) -> None:
        """Do nothing."""


def hooks_of(work: Work) -> list[Hook]:
    """Return the hooks of a case."""
    case = work.case
    hooks: list[Hook] = []
    if case.everyday:
        hooks += [RecordTimes(), WriteMetrics(every=LOG_EVERY)]
        hooks += [StepSchedules(), SaveCheckpoint(every=None)]
    if case.ema:
        hooks.append(AverageWeights(momentum=EMA_SHARE, warmup=False))
    hooks += [Idle().named(f"idle_{number}") for number in range(case.idle)]
    hooks += [Empty().named(f"empty_{number}") for number in range(case.empty)]
    return hooks


def train(work: Work) -> None:
    """Train as the case says."""
    optimizer = work.optimizer()
    Trainer(
        work.model,
        train_data=work.loader(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        schedule=work.schedule(optimizer) if work.case.everyday else None,
        max_epochs=1,
        device="cpu",
        default_hooks=False,
        hooks=hooks_of(work),
        run_dir=work.folder / "run",
    ).train()
