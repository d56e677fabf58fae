"""Plain torch on several ranks: DDP, a DistributedSampler, and a loop."""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, Subset

from bench.many.job import BATCH, LOG_EVERY, VALIDATED, Job, samples


def train(job: Job) -> None:
    """Train, with the loss of all ranks in a file."""
    model, optimizer, loss_of = DistributedDataParallel(job.model), job.optimizer(), nn.MSELoss()
    sampler: DistributedSampler[object] = DistributedSampler(
        job.data, job.size, job.rank, shuffle=job.shuffles
    )
    loader = job.loader(job.data, batch_size=job.own_batch, sampler=sampler)
    job.seed()
    iteration = _load(job, optimizer) if job.resumes else 0
    losses: list[Tensor] = []
    log = (job.folder / "log.jsonl").open("w") if job.rank == 0 else None
    job.model.train()
    for epoch in range(iteration // job.iterations, job.epochs):
        sampler.set_epoch(epoch)
        skip = iteration - epoch * job.iterations
        # A loader draws a number when a pass begins, which the first run has drawn before.
        state = torch.get_rng_state()
        batches = iter(loader)
        for _ in range(skip):
            next(batches)
        if skip:
            torch.set_rng_state(state)
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            iteration += 1
            losses.append(loss.detach())
            if iteration % LOG_EVERY == 0:
                mean = torch.stack(losses).mean()
                dist.all_reduce(mean)
                losses.clear()
                if log is not None:
                    line = {"iter": iteration, "loss": mean.item() / job.size}
                    log.write(json.dumps(line) + "\n")
                    log.flush()
            if iteration == job.save_at:
                _save(job, optimizer, iteration)


def _save(job: Job, optimizer: torch.optim.Optimizer, iteration: int) -> None:
    states: list[Tensor] = [torch.empty(0)] * job.size
    dist.all_gather_object(states, torch.get_rng_state())
    if job.rank == 0:
        content = {
            "model": job.model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "iteration": iteration,
            "rng": states,
        }
        torch.save(content, job.folder / "last.pth")
    dist.barrier()


def _load(job: Job, optimizer: torch.optim.Optimizer) -> int:
    content = torch.load(job.folder / "last.pth", weights_only=True)
    job.model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    torch.set_rng_state(content["rng"][job.rank])
    return int(content["iteration"])


def count_validated(job: Job) -> int:
    """Validate; return how many samples the mean is made of."""
    own = Subset(samples(VALIDATED, job.widths[0]), range(job.rank, VALIDATED, job.size))
    sums = torch.zeros(2, dtype=torch.float64)
    job.model.eval()
    with torch.no_grad():
        for inputs, targets in job.loader(own, batch_size=BATCH // job.size):
            errors = (job.model(inputs) - targets).square()
            sums += torch.tensor([errors.sum(), len(errors)], dtype=torch.float64)
    dist.all_reduce(sums)
    return int(sums[1])


def has_saved(job: Job) -> bool:
    """Return whether the checkpoint is complete; it is written before the training continues."""
    return (job.folder / "last.pth").exists()
