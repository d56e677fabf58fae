"""Compare logical ranks with DDP's all-reduce on 1, 2 and 4 processes, for a few sizes of a model.

Processes are forked on this host and connected by gloo. Both ways train by turns, each turn in new
processes; the figure is the time of an iteration of the slower process, the fastest of all turns.

``python -m bench.logical`` prints the table.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import nn

from bench.many.job import BATCH, Job, fork
from hookloop import Hook, Run, Trainer

LOGICAL = 4
WARM_UP = 5

CONTESTS = (
    ("MLP 16-16-1", (16, 16, 1), 60),
    ("1 M parameters", (64, 970, 970, 1), 20),
    ("10 M parameters", (64, 2200, 2200, 2200, 1), 6),
)
"""A name, the widths of the layers, and how many iterations are timed."""

WAYS = {"DDP": None, f"logical={LOGICAL}": {"logical": LOGICAL}}


class Clock(Hook):
    """Times the iterations behind the first ones."""

    ranks = "all"
    draws_random_numbers = False

    def __init__(self) -> None:
        self.times: list[float] = []

    def after_train_iter(self, run: Run) -> None:
        """Note the moment."""
        self.times.append(perf_counter())

    def mean(self) -> float:
        """Return seconds per iteration."""
        return (self.times[-1] - self.times[WARM_UP]) / (len(self.times) - 1 - WARM_UP)


def train(job: Job, parallel: object) -> float:
    """Train on this rank; return seconds per iteration."""
    torch.set_num_threads(1)
    clock = Clock()
    Trainer(
        job.model,
        train_data=job.loader(job.data, batch_size=BATCH),
        loss=nn.MSELoss(),
        optimizer=job.optimizer(),
        max_epochs=1,
        device="cpu",
        default_hooks=False,
        hooks=[clock],
        parallel=parallel,  # type: ignore[arg-type]
    ).train()
    return clock.mean()


def turn(widths: tuple[int, ...], timed: int, size: int, parallel: object) -> float:
    """Train once; return the seconds per iteration of the slowest process."""
    with TemporaryDirectory() as folder:

        def work(rank: int) -> None:
            job = Job(rank, size, Path(folder), widths, WARM_UP + timed + 1)
            (Path(folder) / str(rank)).write_text(str(train(job, parallel)))

        if any(fork(work, size, 120)):
            raise RuntimeError(f"{parallel} on {size} processes failed")
        return max(float((Path(folder) / str(rank)).read_text()) for rank in range(size))


def measure(*, turns: int) -> dict[str, dict[str, float]]:
    """Measure everything, and print it: microseconds per iteration."""
    found: dict[str, dict[str, float]] = {}
    # What a training imports, here once and not in each process.
    import_module("torch.nn.parallel.distributed")
    train(Job(0, 1, Path(), iterations=WARM_UP + 2), None)
    for name, widths, timed in CONTESTS:
        print(f"\n{name}, global batch {BATCH}; microseconds per iteration, the least of {turns}")
        for size in (1, 2, 4):
            best = dict.fromkeys(WAYS, float("inf"))
            for _ in range(turns):
                for way, parallel in WAYS.items():
                    best[way] = min(best[way], 1e6 * turn(widths, timed, size, parallel))
            found[f"{name}, {size}"] = best
            figures = "  ".join(f"{way} {value:9.0f}" for way, value in best.items())
            print(f"  {size} processes  {figures}", flush=True)
    return found


def main() -> None:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description="Compare logical ranks with DDP.")
    parser.add_argument("--turns", type=int, default=5, help="how often each way trains")
    measure(turns=parser.parse_args().turns)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
