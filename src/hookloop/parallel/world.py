"""The rank of this process among those that train together, and the device that it uses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from hookloop.errors import HookloopError
from hookloop.parallel import slurm


@dataclass(frozen=True)
class World:
    """The rank of a process and the number of processes of a run.

    Attributes:
        rank: The number of this process, from 0.
        size: How many processes train together.
        local_rank: The number of this process on its node.
        local_size: How many of them are on this node.
        node: The number of the node.
        restart: How often the launcher has started all of them again.
        logical: Into how many parts each global batch is cut, whatever the number of processes; 0
            for one part for each process.
        tensor: How many processes, one after the other, split the layers and have the same data.

    >>> World().is_main
    True
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    node: int = 0
    restart: int = 0
    logical: int = 0
    tensor: int = 1

    @property
    def data_rank(self) -> int:
        """Which part of each global batch is that of this process."""
        return self.rank // self.tensor

    @property
    def data_size(self) -> int:
        """For how many groups of processes each global batch is cut.

        >>> (
        ...     [World(rank, 4, tensor=2).data_rank for rank in range(4)],
        ...     World(0, 4, tensor=2).data_size,
        ... )
        ([0, 0, 1, 1], 2)
        """
        return self.size // self.tensor

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether the run has a single process."""
        return self.size == 1

    @property
    def cuts_batches(self) -> bool:
        """Whether each global batch is cut into parts."""
        return self.size > 1 or self.logical > 0

    @property
    def leaves(self) -> range:
        """The logical ranks that this process computes."""
        return range(*self.leaves_of(self.rank))

    def leaves_of(self, rank: int) -> tuple[int, int]:
        """Return the first logical rank of a process, and the end of them.

        >>> [World(size=3, logical=8).leaves_of(rank) for rank in range(3)]
        [(0, 3), (3, 6), (6, 8)]
        """
        each, left = divmod(self.logical, self.size)
        first = rank * each + min(rank, left)
        return first, first + each + (rank < left)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> World:
        """Read what a launcher has set: torchrun, or srun of SLURM; `assume` comes first."""
        if environment is os.environ and (assumed := _assumed.get()) is not None:
            return assumed
        if "RANK" not in environment and "WORLD_SIZE" not in environment:
            return cls(**slurm.read_step(environment)) if slurm.is_step(environment) else cls()
        read = _Variables(environment)
        rank, size = read.number("RANK"), read.number("WORLD_SIZE")
        if not 0 <= rank < size:
            raise HookloopError(f"RANK={rank} does not fit WORLD_SIZE={size}: ranks begin at 0.")
        return cls(
            rank,
            size,
            read.number("LOCAL_RANK", rank),
            read.number("LOCAL_WORLD_SIZE", size),
            read.number("GROUP_RANK", 0),
            # Our own launcher counts for itself, since torch's does not restart under it.
            read.number("HOOKLOOP_RESTART", read.number("TORCHELASTIC_RESTART_COUNT", 0)),
        )


_assumed: ContextVar[World | None] = ContextVar("assumed", default=None)


@contextmanager
def assume(world: World) -> Iterator[None]:
    """Build what is built inside as a rank of this world would, without the other ranks.

    Environment variables would do, but the user's own code reads those, and may connect.
    """
    token = _assumed.set(world)
    try:
        yield
    finally:
        _assumed.reset(token)


@dataclass(frozen=True)
class _Variables:
    """Whole numbers in environment variables."""

    environment: Mapping[str, str]

    def number(self, name: str, default: int | None = None) -> int:
        text = self.environment.get(name)
        if text is None and default is not None:
            return default
        if text is None:
            raise HookloopError(
                f"The launcher has set {'RANK' if name == 'WORLD_SIZE' else 'WORLD_SIZE'} but not "
                f"{name}: start the processes with torchrun, or with hookloop train --ranks."
            )
        return slurm.number(self.environment, name)


def choose_device(wanted: str | torch.device, world: World | None = None) -> torch.device:
    """Return a device; ``"auto"`` is the best one available, for each rank its own.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    world = world or World()
    if wanted != "auto":
        try:
            device = torch.device(wanted)
        except RuntimeError as error:
            hint = "Write 'auto', 'cpu', 'cuda' or 'mps', with a number to choose one: 'cuda:1'."
            raise HookloopError(
                f"device={wanted!r} is not a device of torch. {hint}", argument="device"
            ) from error
        # torch itself fails only when the first tensor is moved, with a message about drivers.
        if device.type == "cuda" and not torch.cuda.is_available():
            raise HookloopError(
                f"device={str(wanted)!r}: torch finds no CUDA device here. Write 'auto' or 'cpu', "
                "or install a build of torch for CUDA and its driver.",
                argument="device",
            )
        if device.type == "cuda" and ":" in str(device) and world.local_size > 1:
            raise HookloopError(
                f"device={str(wanted)!r} would put all {world.local_size} ranks of a node on one "
                "GPU: write 'auto', and each rank takes its own.",
                argument="device",
            )
        return _of_rank(device, world) if device.type == "cuda" else device
    if torch.cuda.is_available():
        return _of_rank(torch.device("cuda"), world)
    if torch.backends.mps.is_available() and world.is_alone:
        return torch.device("mps")
    return torch.device("cpu")


def _of_rank(device: torch.device, world: World) -> torch.device:
    """Return the GPU of this rank."""
    if world.is_alone:
        is_chosen = ":" in str(device)
        return device if is_chosen else torch.device("cuda", torch.cuda.current_device())
    if world.local_rank >= torch.cuda.device_count():
        raise HookloopError(
            f"LOCAL_RANK is {world.local_rank}, but there are {torch.cuda.device_count()} GPUs on "
            "this node: start at most one rank for each GPU.",
            argument="device",
        )
    return torch.device("cuda", world.local_rank)
