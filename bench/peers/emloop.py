"""emloop on the common work: `MainLoop` and its hooks.

It is from 2020 and needs three fixes to be imported today. None of them runs in an iteration.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import sys
import types
import warnings
from collections.abc import Iterator
from time import perf_counter

import ruamel.yaml
import torch
from torch import Tensor, nn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work, parameters


def fix_imports() -> None:
    """Give emloop what its dependencies no longer have."""
    old = types.ModuleType("pkg_resources")
    setattr(old, "get_distribution", importlib.metadata.distribution)  # noqa: B010
    sys.modules.setdefault("pkg_resources", old)
    for name in ("load", "dump"):
        if not hasattr(ruamel.yaml, name):
            setattr(ruamel.yaml, name, getattr(ruamel.yaml.YAML(typ="safe"), name))
    warnings.filterwarnings("ignore", category=SyntaxWarning, module="emloop")


fix_imports()

from emloop import MainLoop  # noqa: E402 - after the fixes
from emloop.hooks import AbstractHook, SaveLatest, StopAfter  # noqa: E402
from emloop.models import AbstractModel  # noqa: E402
from emloop.utils.misc import CaughtInterrupts  # noqa: E402

# Signals can only be caught in the main thread, and this runs in another one.
CaughtInterrupts.__enter__ = lambda self: self
CaughtInterrupts.__exit__ = lambda self, *error: None


class Dataset:
    """The batches, by name."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def train_stream(self) -> Iterator[dict[str, Tensor]]:
        """Yield the batches of an epoch."""
        for inputs, targets in self.work.loader():
            yield {"inputs": inputs, "targets": targets}


class Model(AbstractModel):
    """The model with its update."""

    input_names = ("inputs", "targets")
    output_names = ("loss",)

    def __init__(self, work: Work) -> None:
        self.work = work
        self.optimizer = work.optimizer()
        self.loss = nn.MSELoss()

    def run(self, batch: dict[str, Tensor], train: bool, stream: object) -> dict[str, object]:
        """Make an update."""
        self.optimizer.zero_grad()
        loss = self.loss(self.work.model(batch["inputs"]), batch["targets"])
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.detach()}

    def save(self, name_suffix: str) -> str:
        """Write a checkpoint."""
        path = str(self.work.folder / f"{name_suffix}.pth")
        state = {"model": self.work.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, path)
        return path

    @property
    def restore_fallback(self) -> str:
        """Return the class that could load it; none here."""
        return ""


class Watch(AbstractHook):
    """Steps the schedule, times iterations and writes a line at an interval."""

    def __init__(self, work: Work, model: Model) -> None:
        super().__init__()
        self.schedule = work.schedule(model.optimizer)
        self.log = (work.folder / "log.jsonl").open("w")
        self.iteration, self.spent, self.since = 0, 0.0, perf_counter()

    def after_batch(self, stream_name: str, batch_data: dict[str, Tensor]) -> None:
        """Step the schedule, and log at the interval."""
        self.schedule.step()
        self.iteration += 1
        now = perf_counter()
        self.spent, self.since = self.spent + now - self.since, now
        if self.iteration % LOG_EVERY == 0:
            line = {
                "iter": self.iteration,
                "loss": batch_data["loss"].item(),
                "lr": self.schedule.get_last_lr()[0],
                "iter_time": self.spent / LOG_EVERY,
            }
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
            self.spent = 0.0


class Average(AbstractHook):
    """Averages the weights, which the library itself cannot do."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.live = list(parameters(work.model))
        self.average = [tensor.clone() for tensor in self.live]

    def after_batch(self, stream_name: str, batch_data: dict[str, Tensor]) -> None:
        """Update the average."""
        torch._foreach_lerp_(self.average, self.live, EMA_SHARE)


class Idle(AbstractHook):
    """Acts after an epoch only."""

    def after_epoch(self, epoch_id: int, epoch_data: object) -> None:
        """Do nothing."""


class Empty(AbstractHook):
    """Is called after each iteration, and does nothing."""

    def after_batch(self, stream_name: str, batch_data: object) -> None:
        """Do nothing."""


def train(work: Work) -> None:
    """Train as the case says."""
    logging.getLogger().setLevel(logging.ERROR)
    case, model = work.case, Model(work)
    hooks: list[AbstractHook] = [Idle() for _ in range(case.idle)]
    hooks += [Empty() for _ in range(case.empty)]
    if case.everyday:
        hooks += [Watch(work, model), SaveLatest(model=model)]
    if case.ema:
        hooks.append(Average(work))
    hooks.append(StopAfter(epochs=1))
    MainLoop(model, Dataset(work), hooks, skip_zeroth_epoch=True).run_training()
