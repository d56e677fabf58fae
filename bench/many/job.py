"""The work that every engine does on several ranks, and the ranks themselves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from bench.tiny import PlainLoader

BATCH = 8
"""Samples of all ranks together, in one iteration."""
LOG_EVERY = 50
LR = 1e-3
VALIDATED = 103
"""Samples to validate: neither ranks nor batches divide them."""


class Network(nn.Module):
    """An MLP, and a function to call when a forward pass of a training begins."""

    def __init__(self, widths: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers[:-2])
        self.notify: Callable[[], object] = lambda: None

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the output."""
        if self.training:
            self.notify()
        output: Tensor = self.layers(inputs)
        return output


@dataclass
class Job:
    """One training for one engine, on this rank.

    Attributes:
        rank: The number of this rank.
        size: How many ranks there are.
        folder: The directory for files, the same on all ranks.
        widths: Units of the layers.
        iterations: How many iterations an epoch has.
        epochs: How many epochs to train.
        dropout: Share of the units that are left out.
        shuffles: Whether each epoch has another order.
        save_at: The iteration after which a checkpoint is saved; 0 for none.
        resumes: Whether to continue from that checkpoint.
        model: The model; its `notify` is called when a forward pass of the training begins.
        data: The samples of an epoch.
    """

    rank: int
    size: int
    folder: Path
    widths: tuple[int, ...] = (16, 16, 1)
    iterations: int = 100
    epochs: int = 1
    dropout: float = 0.0
    shuffles: bool = False
    save_at: int = 0
    resumes: bool = False
    model: Network = field(init=False)
    data: TensorDataset = field(init=False)

    def __post_init__(self) -> None:
        self.model = Network(self.widths, self.dropout)
        self.data = samples(self.iterations * BATCH, self.widths[0])

    @property
    def own_batch(self) -> int:
        """Samples of one rank in an iteration."""
        return BATCH // self.size

    def loader(self, data: Dataset[object], **options: object) -> DataLoader[list[Tensor]]:
        """Return a plain loader, of a type for which hookloop does not take its fast path."""
        return PlainLoader(data, **options)  # type: ignore[arg-type]

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.model.parameters(), lr=LR, momentum=0.9)

    def seed(self) -> None:
        """Give each rank random numbers of its own."""
        torch.manual_seed(1000 + self.rank)


def samples(count: int, width: int) -> TensorDataset:
    """Make samples and targets."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, width, generator=generator)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def fork(function: Callable[[int], None], size: int, timeout: float = 1800.0) -> list[int]:
    """Call a function on each of several connected ranks; return their exit codes."""
    context, port = multiprocessing.get_context("fork"), _free_port()
    ranks = [
        context.Process(target=_rank, args=(function, rank, size, port)) for rank in range(size)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout)
        if rank.is_alive():
            rank.kill()
            rank.join()
    return [rank.exitcode or 0 for rank in ranks]


def _rank(function: Callable[[int], None], rank: int, size: int, port: int) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    function(rank)
    torch.distributed.destroy_process_group()


def kill_this_rank() -> None:
    """End like a machine that is switched off."""
    os.kill(os.getpid(), signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
