"""`Requeue`: a SLURM job whose time is over goes back to the queue."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.core.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.hooks.stop_on_signal import StopOnSignal

if TYPE_CHECKING:
    from hookloop.core.run import Run

_log = logging.getLogger("hookloop")

COMMAND = "scontrol"
PATIENCE = 60.0
"""Seconds that SLURM may take to answer."""


class Requeue(Hook):
    """Give a SLURM job back to the queue after a signal of the cluster has ended the run.

    The last checkpoint is durable by then. The job starts again as it was submitted, so it has to
    be written to continue: with ``resume="auto"``. SLURM sends the signal if the job asks for it:
    ``#SBATCH --signal=USR1@120``. Outside of SLURM this hook does nothing.

    Args:
        signals: The signals to act on. SIGTERM is not among them: ``scancel`` sends it, too.
        max_restarts: How often at most, as SLURM counts; None for no limit.

    Example:
        >>> [number.name for number in Requeue(max_restarts=20).signals]
        ['SIGUSR1', 'SIGUSR2']
    """

    priority = Priority.LOWEST
    on_error = "disable"
    draws_random_numbers = False

    def __init__(
        self,
        signals: Sequence[str] = ("SIGUSR1", "SIGUSR2"),
        max_restarts: int | None = None,
    ) -> None:
        known = signal.Signals.__members__
        for name in signals:
            if name not in known:
                raise HookError(f"Requeue: no signal '{name}'.{nearest(name, known)}")
        if max_restarts is not None and max_restarts < 0:
            raise HookError(f"Requeue: max_restarts must be at least 0, not {max_restarts}.")
        self.signals = tuple(known[name] for name in signals)
        self.max_restarts = max_restarts

    def before_train(self, run: Run) -> None:
        job = job_of(os.environ)
        if not run.world.is_main or job is None:
            return
        obeyed = {
            number
            for hook in run.hooks
            if isinstance(hook, StopOnSignal)
            for number in hook.signals
        }
        if missing := [number.name for number in self.signals if number not in obeyed]:
            raise HookError(
                f"Requeue: {', '.join(missing)} would kill the run before it saves: let "
                "StopOnSignal, the default hook 'signals', obey it."
            )
        if shutil.which(COMMAND) is None:
            raise HookError(
                f"Requeue: there is no '{COMMAND}' on the PATH, so job {job} cannot be given back. "
                "In a container, make SLURM's commands visible, or requeue from the batch script."
            )

    def after_run(self, run: Run) -> None:
        job, outcome = job_of(os.environ), run.outcome
        if not run.world.is_main or job is None or outcome.status != "interrupted":
            return
        if outcome.signal not in self.signals:
            return
        restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        if self.max_restarts is not None and restarts >= self.max_restarts:
            _log.warning(
                "Job %s was restarted %d times already, so it is not given back to the queue "
                "(max_restarts).",
                job,
                restarts,
            )
            return
        _log.info("Giving job %s back to the queue.", job)
        _requeue(job)


def job_of(environment: Mapping[str, str]) -> str | None:
    """Return what SLURM calls this job, or None outside of one.

    The last task of an array has the number of the array itself, which would requeue all of it.

    >>> job_of({"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"})
    '7_3'
    """
    array, task = (environment.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else environment.get("SLURM_JOB_ID") or None


def _requeue(job: str) -> None:
    done = subprocess.run(
        [COMMAND, "requeue", job], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise ChildProcessError(f"job {job} could not be given back to the queue: {said}")
