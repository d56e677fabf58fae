"""Accelerate on the common work: it prepares what a hand-written loop uses, and has no hooks."""

from __future__ import annotations

import json
from time import perf_counter

from accelerate import Accelerator
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work


def train(work: Work) -> None:
    """Train as the case says."""
    if work.case.idle or work.case.empty:
        raise NotImplementedError("it has no hooks")
    accelerator, loss_of, optimizer = Accelerator(cpu=True), nn.MSELoss(), work.optimizer()
    model, optimizer, loader, schedule = accelerator.prepare(
        work.model, optimizer, work.loader(), work.schedule(optimizer)
    )
    average = None
    if work.case.ema:
        update = get_ema_multi_avg_fn(1 - EMA_SHARE)  # type: ignore[no-untyped-call]
        average = AveragedModel(model, multi_avg_fn=update)
    spent, since = 0.0, perf_counter()
    model.train()
    with (work.folder / "log.jsonl").open("w") as log:
        for iteration, (inputs, targets) in enumerate(loader, start=1):
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            if not work.case.everyday:
                continue
            schedule.step()
            if average is not None:
                average.update_parameters(model)
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
    if work.case.everyday:
        accelerator.save_state(str(work.folder / "last"))
