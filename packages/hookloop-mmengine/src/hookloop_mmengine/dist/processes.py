"""``mmengine.dist``: which process this is, and how it is connected to the others."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import torch.distributed

from hookloop.errors import HookloopError, nearest
from hookloop.dialects import Ranks, World, choose_device

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

P = ParamSpec("P")
R = TypeVar("R")

LAUNCHERS = ("none", "pytorch", "slurm", "mpi")
PORT = "29500"
"""The port at which processes meet if nobody has set one; torch's own default."""

_connection: Ranks | None = None
_is_undivided = False


def is_distributed() -> bool:
    """Return whether a process group is initialized."""
    # A torch that is built without distributed training has no `is_initialized`.
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process."""
    return torch.distributed.get_rank(group) if is_distributed() and not _is_undivided else 0


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of processes."""
    return torch.distributed.get_world_size(group) if is_distributed() and not _is_undivided else 1


def get_dist_info(group: ProcessGroup | None = None) -> tuple[int, int]:
    """Return the rank and the number of processes."""
    return get_rank(group), get_world_size(group)


def get_local_rank() -> int:
    """Return the rank of this process on its node."""
    return World.from_environment().local_rank if is_distributed() else 0


def get_local_size() -> int:
    """Return the number of processes on this node."""
    return World.from_environment().local_size if is_distributed() else 1


def get_backend(group: ProcessGroup | None = None) -> str | None:
    """Return how tensors travel, such as ``gloo``; None in a single process."""
    return torch.distributed.get_backend(group) if is_distributed() else None


def get_default_group() -> ProcessGroup | None:
    """Return the group of all processes; None in a single process."""
    return torch.distributed.group.WORLD if is_distributed() else None


def is_main_process(group: ProcessGroup | None = None) -> bool:
    """Return whether this is the process that writes files."""
    return get_rank(group) == 0


def master_only(func: Callable[P, R]) -> Callable[P, R | None]:
    """Make a function do nothing except in the main process."""

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        return func(*args, **kwargs) if is_main_process() else None

    return wrapper


def barrier(group: ProcessGroup | None = None) -> None:
    """Wait for all processes."""
    if is_distributed():
        torch.distributed.barrier(group)


@contextmanager
def undivided() -> Iterator[None]:
    """Let samplers that are built within this context yield the order of all processes.

    MMEngine's samplers ask for rank and number of processes when they are built, and take every
    n-th sample. Here the engine divides each global batch itself.
    """
    global _is_undivided  # noqa: PLW0603 - samplers call functions and not methods
    _is_undivided = True
    try:
        yield
    finally:
        _is_undivided = False


# --- the connection -----------------------------------------------------------------------------


def init_dist(launcher: str, backend: str = "nccl", **kwargs: object) -> None:
    """Connect the processes that a launcher has started; ``none`` connects nothing.

    Args:
        launcher: ``pytorch``, ``slurm`` or ``mpi``: it says which variables name the rank.
        backend: Accepted for its name: tensors of a GPU travel with nccl, all others with gloo.
        kwargs: Accepted for their names, such as ``timeout``.
    """
    connect(launcher)


def connect(launcher: str, timeout: float | None = None) -> Ranks | None:
    """Connect the processes of a launcher; return the connection, or None for a single process.

    A second call returns the connection that there is. For ``timeout`` see `Ranks`.
    """
    global _connection  # noqa: PLW0603 - a process has one connection
    if launcher not in LAUNCHERS:
        raise ValueError(
            f"launcher='{launcher}' is not one of {', '.join(LAUNCHERS)}."
            f"{nearest(launcher, LAUNCHERS)}"
        )
    if launcher in ("slurm", "mpi"):
        name_rank(launcher, os.environ)
    world = World.from_environment()
    if launcher == "pytorch" and "RANK" not in os.environ:
        raise HookloopError(
            "launcher='pytorch' needs processes that torchrun has started: write "
            "torchrun --nproc-per-node 2 script.py, or launcher='none' for a single process."
        )
    # With `none` too: the engine trains together with the processes that it finds.
    if world.is_alone or (_connection is not None and _connection.is_open):
        return None if world.is_alone else _connection
    _connection = Ranks(world) if timeout is None else Ranks(world, timeout)
    _connection.open(choose_device("auto", world))
    return _connection


def infer_launcher() -> str:
    """Return the launcher that started this process, or ``none``."""
    if "WORLD_SIZE" in os.environ:
        return "pytorch"
    if "SLURM_NTASKS" in os.environ:
        return "slurm"
    return "mpi" if "OMPI_COMM_WORLD_LOCAL_RANK" in os.environ else "none"


_VARIABLES = {
    "slurm": {
        "RANK": "SLURM_PROCID", "WORLD_SIZE": "SLURM_NTASKS", "LOCAL_RANK": "SLURM_LOCALID",
        "LOCAL_WORLD_SIZE": "SLURM_NTASKS_PER_NODE", "GROUP_RANK": "SLURM_NODEID",
    },
    "mpi": {
        "RANK": "OMPI_COMM_WORLD_RANK", "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
}  # fmt: skip


def name_rank(launcher: str, environment: MutableMapping[str, str]) -> None:
    """Set torchrun's variables from those of another launcher; what is set already stays."""
    for name, theirs in _VARIABLES[launcher].items():
        if theirs in environment:
            environment.setdefault(name, environment[theirs])
        elif name in ("RANK", "WORLD_SIZE") and name not in environment:
            raise HookloopError(
                f"launcher='{launcher}' needs the variable {theirs}, which is not set: start the "
                f"processes with {'srun' if launcher == 'slurm' else 'mpirun'}."
            )
    nodes = environment.get("SLURM_JOB_NODELIST", environment.get("SLURM_NODELIST", ""))
    first = first_node(nodes) if launcher == "slurm" and nodes else "127.0.0.1"
    environment.setdefault("MASTER_ADDR", first)
    environment.setdefault("MASTER_PORT", PORT)


def first_node(nodes: str) -> str:
    """Return the first host of SLURM's list of nodes.

    >>> first_node("gpu[07-09,12],login1"), first_node("a3,a4")
    ('gpu07', 'a3')
    """
    found = re.match(r"([^\[,]+)(?:\[(\d+))?", nodes)
    return nodes if found is None else found[1] + (found[2] or "")
