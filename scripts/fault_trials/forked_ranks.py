"""A launcher and its ranks, which a trial starts, kills and waits for.

All of them are forked from this process: importing torch takes longer than the training.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from fault_trials.process import TrialFailed
from hookloop import Trainer
from hookloop.parallel.failure import PeerFailed
from hookloop.parallel.launched import LAUNCH, join_launcher, read_reports

PATIENCE = 60.0
"""Seconds after which a training, or what is left of it, counts as hanging."""

_PR_SET_CHILD_SUBREAPER = 36


class LaunchedRanks:
    """A launcher process with its ranks.

    The ranks are connected as torchrun connects them, and join the launcher as those of
    ``hookloop train --ranks`` do. The launcher itself does nothing but wait: a rank that has lost
    another one must end by itself.

    Args:
        run_dir: The run.
        size: The number of ranks.
        make: Builds the trainer, in each rank.
    """

    def __init__(self, run_dir: Path, size: int, make: Callable[[], Trainer]) -> None:
        self.log = run_dir.with_suffix(".log")
        self.folder = Path(tempfile.mkdtemp(prefix="launch-", dir=run_dir.parent))
        self.size = size
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_launch(size, make, self.log, self.folder))
        self._handle = os.pidfd_open(self.pid)

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the launcher; return whether it came."""
        return bool(select.select([self._handle], [], [], max(seconds, 0.0))[0])

    def kill(self, who: str) -> bool:
        """Kill ``"launcher"``, ``"all ranks"`` or ``"rank 2"``; return whether there was one."""
        reports = read_reports(self.folder)
        wanted = [self.pid] if who == "launcher" else []
        wanted += [one.pid for one in reports.values() if who in ("all ranks", f"rank {one.rank}")]
        for pid in wanted:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(wanted)

    def finish(self) -> int:
        """Wait until the launcher and all ranks have ended; return the launcher's exit code.

        Raises:
            TrialFailed: If one hangs.
        """
        end = time.monotonic() + PATIENCE
        if not self.wait(PATIENCE):
            os.killpg(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._handle)
        code = os.waitstatus_to_exitcode(status)
        # The ranks of a killed launcher become children of this process.
        while self._reap():
            if time.monotonic() > end:
                os.killpg(self.pid, signal.SIGKILL)
                raise TrialFailed(f"ranks hang for {PATIENCE:.0f} s:\n{self.tail()}")
            time.sleep(0.005)
        return code

    def _reap(self) -> bool:
        """Return whether a process of this launcher still runs."""
        with suppress(ChildProcessError):
            while True:
                if os.waitpid(-self.pid, os.WNOHANG)[0] == 0:
                    return True
        return False

    def tail(self) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def adopt_orphans() -> None:
    """Import what ranks need, and become the parent of those whose launcher is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=1.0).step()
    for name in ("nn.parallel.distributed", "distributed.fsdp", "distributed.checkpoint"):
        importlib.import_module(f"torch.{name}")


def _launch(size: int, make: Callable[[], Trainer], log: Path, folder: Path) -> int:
    """Start the ranks in the launcher's process, and wait for them; return its exit code."""
    os.setsid()
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ |= {
        LAUNCH: f"{os.getpid()}:{folder}",
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
    }
    pids = []
    for rank in range(size):
        pids.append(os.fork())
        if pids[-1] == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            os._exit(_train(make))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    killed = -signal.SIGKILL in codes
    return 128 + signal.SIGKILL if killed else max(codes, key=abs)


def _train(make: Callable[[], Trainer]) -> int:
    try:
        join_launcher()
        return make().train().exit_code
    except PeerFailed:
        return 1
    except BaseException:  # noqa: BLE001 - a forked process must not return to its caller
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
