"""Run a function on several ranks: forked processes that are connected as torchrun connects them.

A rank costs a fork, a tenth of what a new Python with torch would.
"""

import importlib
import io
import multiprocessing
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

TIMEOUT = 90.0


@cache
def import_torch_parts() -> None:
    """Import what torch imports only when it is used: here once, and not again in each rank."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0).step()
    importlib.import_module("torch.nn.parallel.distributed")
    importlib.import_module("torch.distributed.fsdp")
    importlib.import_module("torch.distributed.checkpoint")


@dataclass
class Ended:
    """How a rank ended.

    Attributes:
        value: What the function returned.
        error: The traceback of what it raised, or an empty text.
        code: The exit code: of a SystemExit, or minus the signal that killed it.
        seconds: When it ended, from the start of all.
    """

    value: Any = None
    error: str = ""
    code: int | None = 0
    seconds: float = 0.0


def on_ranks(function: Callable[..., Any], size: int, *args: object) -> list[Any]:
    """Call a function on each rank; return the results in order, fail if any rank failed."""
    ends = each_rank(function, size, *args)
    failed = [
        f"rank {rank} ({end.code}):\n{end.error}" for rank, end in enumerate(ends) if end.code
    ]
    assert not failed, "\n".join(failed)
    return [end.value for end in ends]


def each_rank(
    function: Callable[..., Any], size: int, *args: object, timeout: float = TIMEOUT
) -> list[Ended]:
    """Call a function on each rank; return how each ended."""
    import_torch_parts()
    context, port, start = multiprocessing.get_context("fork"), free_port(), time.monotonic()
    pipes, processes = [], []
    for rank in range(size):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_rank, args=(function, rank, size, port, there, args))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    ends = [Ended(code=None) for _ in range(size)]
    waiting = dict(enumerate(process.sentinel for process in processes))
    while waiting:
        left = start + timeout - time.monotonic()
        ready = wait([*waiting.values(), *(pipes[rank] for rank in waiting)], max(left, 0))
        if not ready:
            for process in processes:
                process.kill()
            raise AssertionError(f"After {timeout} s these ranks had not ended: {list(waiting)}")
        for rank in list(waiting):
            if pipes[rank] in ready and ends[rank].code is None:
                _receive(pipes[rank], ends[rank])
            if waiting[rank] in ready:
                processes[rank].join()
                ends[rank].seconds = time.monotonic() - start
                code = processes[rank].exitcode
                ends[rank].code = code if code or ends[rank].code is None else ends[rank].code
                del waiting[rank]
    return ends


def _receive(pipe: Connection, end: Ended) -> None:
    try:
        # As a file of torch's: multiprocessing would send tensors as memory of the other process.
        sent = io.BytesIO(pipe.recv_bytes())
        end.value, end.error, end.code = torch.load(sent, weights_only=False)
    except EOFError:  # Killed: the exit code of the process says by what.
        return


def _rank(
    function: Callable[..., Any], rank: int, size: int, port: int, pipe: Connection, args: Any
) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    result: tuple[Any, str, int] = (None, "", 0)
    try:
        result = (function(*args), "", 0)
    except SystemExit as error:
        result = (None, traceback.format_exc(), error.code if isinstance(error.code, int) else 1)
    except BaseException:  # noqa: BLE001 - whatever it is, the test has to see it
        result = (None, traceback.format_exc(), 1)
    buffer = io.BytesIO()
    torch.save(result, buffer)
    pipe.send_bytes(buffer.getvalue())
    pipe.close()
    leave()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(result[2])  # Not the exit of the parent, whose fixtures and reports are not ours.


def leave() -> None:
    """Disconnect, as the exit of a process does."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def free_port() -> int:
    """Return a port of this host that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
