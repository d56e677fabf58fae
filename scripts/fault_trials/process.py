"""One process of a run, which a trial starts, disturbs and waits for."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hookloop import Trainer
from hookloop.errors import CheckpointError, LinkError
from hookloop.outcome import Interrupted

REJECTED = 2
"""Exit code of a run that could not start."""


class TrialFailed(Exception):
    """Something that must not happen has happened."""


class TrainingProcess:
    """One process of a run.

    Args:
        run_dir: The run.
        make: Builds the trainer, in the new process.
    """

    def __init__(self, run_dir: Path, make: Callable[[], Trainer]) -> None:
        self.log = run_dir.with_suffix(".log")
        # Forked, because importing torch takes longer than the training.
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_train_and_exit(make, self.log))
        self._handle = os.pidfd_open(self.pid)

    def wait(self, seconds: float | None = None, *, alone: bool = False) -> int | None:
        """Return the exit code, or minus the number of the signal that killed it.

        Args:
            seconds: How long to wait; None is returned if it still runs then.
            alone: Whether to leave the processes alone that it has started; otherwise they are
                killed.
        """
        ready, _, _ = select.select([self._handle], [], [], seconds)
        if not ready:
            return None
        _, status = os.waitpid(self.pid, 0)
        os.close(self._handle)
        if not alone:
            with suppress(ProcessLookupError):
                # The workers would notice the death of their parent only after a while.
                os.killpg(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(status)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process only, as the kernel does when memory runs out."""
        os.kill(self.pid, number)

    def has_processes(self) -> bool:
        """Return whether processes that it has started still run."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def finish(self) -> int:
        """Wait for the end of the process; return the exit code."""
        code = self.wait()
        assert code is not None
        return code

    def tail(self) -> str:
        """Return the last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def _train_and_exit(make: Callable[[], Trainer], log: Path) -> int:
    """Train in the child process; return its exit code."""
    os.setsid()  # A group of its own, so that signals to the group do not reach the trial.
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        return make().train().exit_code
    except Interrupted as interruption:
        return interruption.outcome.exit_code
    except (CheckpointError, LinkError) as error:
        print(f"rejected: {error}", flush=True)
        return REJECTED
    except BaseException:  # noqa: BLE001 - a forked process must not return to its caller
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
