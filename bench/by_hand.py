"""The hand-written loops that every engine is compared with."""

from __future__ import annotations

import json
from time import perf_counter

import torch
from torch import nn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work, parameters


def train(work: Work) -> None:
    """Train as the case says."""
    if work.case.everyday:
        _train_and_watch(work)
    else:
        _train(work)


def _train(work: Work) -> None:
    model, optimizer, loss_of = work.model, work.optimizer(), nn.MSELoss()
    model.train()
    for inputs, targets in work.loader():
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()


def _train_and_watch(work: Work) -> None:
    """Do by hand what the everyday set does, at the lowest cost."""
    model, optimizer, loss_of = work.model, work.optimizer(), nn.MSELoss()
    schedule = work.schedule(optimizer)
    live = list(parameters(model))
    average = [tensor.clone() for tensor in live]
    spent, since = 0.0, perf_counter()
    model.train()
    with (work.folder / "log.jsonl").open("w") as log:
        for iteration, (inputs, targets) in enumerate(work.loader(), start=1):
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            schedule.step()
            if work.case.ema:
                torch._foreach_lerp_(average, live, EMA_SHARE)
            now = perf_counter()
            spent, since = spent + now - since, now
            if iteration % LOG_EVERY == 0:
                line = {
                    "iter": iteration,
                    "loss": loss.item(),
                    "lr": schedule.get_last_lr()[0],
                    "iter_time": spent / LOG_EVERY,
                }
                log.write(json.dumps(line) + "\n")
                log.flush()
                spent = 0.0
    checkpoint = {
        "model": model.state_dict(),
        "average": average,
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    torch.save(checkpoint, work.folder / "last.pth")
