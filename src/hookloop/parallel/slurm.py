"""The ranks of a job step that SLURM's ``srun`` started.

Only a step counts. A batch script has the variables of its job, such as SLURM_NTASKS=8, but it is
one process: a training that it starts without srun must not wait for seven others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import TCPStore

FIRST_SPECIAL_STEP = 2**32 - 16
"""SLURM numbers batch scripts and interactive shells from here on: they are not steps of srun."""

FIRST_PORT, PORTS = 15_000, 15_000
"""Where ranks meet: below the ports that Linux gives to outgoing connections."""


def is_step(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process is a task that srun started."""
    step = environment.get("SLURM_STEP_ID", "")
    is_real = step.isdecimal() and int(step) < FIRST_SPECIAL_STEP
    return is_real and "SLURM_PROCID" in environment and _size_name(environment) is not None


def read_step(environment: Mapping[str, str] = os.environ) -> dict[str, int]:
    """Return the fields of a `World` of the step's task."""
    name = _size_name(environment) or "SLURM_NTASKS"
    rank, size = number(environment, "SLURM_PROCID"), number(environment, name)
    if not 0 <= rank < size:
        raise HookloopError(f"SLURM_PROCID={rank} does not fit {name}={size}: ranks begin at 0.")
    node = number(environment, "SLURM_NODEID", 0)
    return {
        "rank": rank,
        "size": size,
        "local_rank": number(environment, "SLURM_LOCALID", rank),
        "local_size": _local_size(environment, node, size),
        "node": node,
        "restart": number(environment, "SLURM_RESTART_COUNT", 0),
    }


def number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    """Return a whole number of the environment."""
    text = environment.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError as error:
        raise HookloopError(f"{name}={text!r} must be a whole number.") from error


def _size_name(environment: Mapping[str, str]) -> str | None:
    # A step may have fewer tasks than its job, and only the first variable is always the step's.
    names = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    return next((name for name in names if name in environment), None)


def _local_size(environment: Mapping[str, str], node: int, size: int) -> int:
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
        tasks = tasks_per_node(environment.get(name, ""))
        # The second one is the job's, and only says something if the step has all of its tasks.
        if node < len(tasks) and sum(tasks) == size:
            return tasks[node]
    return min(size, number(environment, "SLURM_NTASKS_PER_NODE", size))


def tasks_per_node(text: str) -> list[int]:
    """Return how many tasks each node has.

    >>> tasks_per_node("4(x2),3")
    [4, 4, 3]
    """
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if found is None:
            raise HookloopError(
                f"SLURM_TASKS_PER_NODE: '{part}' must be a number of tasks, such as 4 or 4(x2)."
            )
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def first_host(nodes: str) -> str:
    """Return the first of a list of hosts as SLURM writes it.

    >>> first_host("gpu[003-005,9],login1")
    'gpu003'
    """
    first = re.match(r"(?:[^,\[\]]|\[[^\]]*\])+", nodes)
    if first is None:
        raise HookloopError(f"SLURM_STEP_NODELIST={nodes!r} has no host.")
    # A list in brackets starts with a number, or with a range whose zeros belong to the name.
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first[0])


def meeting_place(environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return the host and port of the first rank, the same on all of them.

    MASTER_ADDR and MASTER_PORT, which batch scripts often set themselves, are followed.
    """
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    host = environment.get("MASTER_ADDR")
    if host is None and nodes is None:
        raise HookloopError(
            "SLURM has set neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST, so the ranks cannot "
            "find each other: set MASTER_ADDR to the host of the first one."
        )
    # Steps of one job may run at the same time, on the same node.
    job, step = number(environment, "SLURM_JOB_ID", 0), number(environment, "SLURM_STEP_ID", 0)
    port = FIRST_PORT + (job * 31 + step) % PORTS
    return host or first_host(nodes or ""), number(environment, "MASTER_PORT", port)


def open_store(
    rank: int, size: int, wait: timedelta, environment: Mapping[str, str] = os.environ
) -> TCPStore:
    """Connect to the store of a step, which the first rank keeps."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    host, port = meeting_place(environment)
    # Made here and not by env://, which would need variables that children inherit.
    return TCPStore(host, port, size, is_master=rank == 0, timeout=wait, multi_tenant=True)
