"""Accelerate on several ranks: it prepares what a hand-written loop uses."""

from __future__ import annotations

import json

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import Tensor, nn

from bench.many.job import BATCH, LOG_EVERY, VALIDATED, Job, samples


def train(job: Job) -> None:
    """Train, with the loss of all ranks in a file."""
    order = DataLoaderConfiguration(use_seedable_sampler=True)
    accelerator = Accelerator(cpu=True, dataloader_config=order)
    loss_of = nn.MSELoss()
    plain = job.loader(job.data, batch_size=job.own_batch, shuffle=job.shuffles)
    model, optimizer, loader = accelerator.prepare(job.model, job.optimizer(), plain)
    job.seed()
    iteration = 0
    if job.resumes:
        accelerator.load_state(str(job.folder / "state"))
        iteration = job.save_at
    losses: list[Tensor] = []
    log = (job.folder / "log.jsonl").open("w") if accelerator.is_main_process else None
    model.train()
    for epoch in range(iteration // job.iterations, job.epochs):
        loader.set_epoch(epoch)
        skip = iteration - epoch * job.iterations
        for inputs, targets in accelerator.skip_first_batches(loader, skip) if skip else loader:
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            iteration += 1
            losses.append(loss.detach())
            if iteration % LOG_EVERY == 0:
                mean = accelerator.reduce(torch.stack(losses).mean(), "mean")
                losses.clear()
                if log is not None:
                    log.write(json.dumps({"iter": iteration, "loss": mean.item()}) + "\n")
                    log.flush()
            if iteration == job.save_at and not job.resumes:
                accelerator.save_state(str(job.folder / "state"))
                accelerator.wait_for_everyone()
                (job.folder / "saved").touch()


def count_validated(job: Job) -> int:
    """Validate; return how many samples the mean is made of."""
    accelerator = Accelerator(cpu=True)
    plain = job.loader(samples(VALIDATED, job.widths[0]), batch_size=BATCH // job.size)
    model, loader = accelerator.prepare(job.model, plain)
    model.eval()
    counted = 0
    with torch.no_grad():
        for inputs, targets in loader:
            outputs, _ = accelerator.gather_for_metrics((model(inputs), targets))
            counted += len(outputs)
    return counted


def has_saved(job: Job) -> bool:
    """Return whether the checkpoint is complete; it is written before the training continues."""
    return (job.folder / "saved").exists()
