"""`Requeue`: return a SLURM job to the queue when its time is over."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.hooks.ending.stop_on_signal import StopOnSignal
from hookloop.runs.run_log import current_logs

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

COMMAND = "scontrol"
PATIENCE = 60.0
"""Seconds to wait for an answer of SLURM, which can be slow when the cluster is busy."""


class Requeue(Hook):
    """Return a SLURM job to the queue after a signal from the cluster has ended the run.

    The last checkpoint is safely stored by then. The job starts again as it was submitted, so its
    run must be able to continue: ``resume="auto"``. SLURM sends the signal if the job asks for it:
    ``#SBATCH --signal=USR1@120``. Outside of SLURM this hook does nothing.

    Args:
        signals: The signals to act on. SIGTERM is not among them, because ``scancel`` sends it too.
        max_restarts: The largest number of restarts, as SLURM counts them; None for no limit.

    Example:
        >>> [number.name for number in Requeue(max_restarts=20).signals]
        ['SIGUSR1', 'SIGUSR2']
    """

    ranks = "first"
    priority = Priority.LOWEST  # SLURM kills the job as soon as it accepts the request.
    on_error = "disable"
    draws_random_numbers = False

    def __init__(
        self,
        signals: Sequence[str] = ("SIGUSR1", "SIGUSR2"),
        max_restarts: int | None = None,
    ) -> None:
        members = signal.Signals.__members__
        for name in signals:
            if name not in members:
                raise HookError(f"Requeue: no signal '{name}'.{nearest(name, members)}")
        if max_restarts is not None and max_restarts < 0:
            raise HookError(f"Requeue: max_restarts must be at least 0, not {max_restarts}.")
        self.signals = tuple(members[name] for name in signals)
        self.max_restarts = max_restarts

    def before_train(self, run: Run) -> None:
        job = job_of(os.environ)
        if job is None:
            return
        # Checked now: the signal comes hours later, when nobody is there to fix the job.
        handled = {
            number
            for hook in run.hooks
            if isinstance(hook, StopOnSignal)
            for number in hook.signals
        }
        if missing := [number.name for number in self.signals if number not in handled]:
            raise HookError(
                f"Requeue: {', '.join(missing)} would kill the run before it saves: let "
                "StopOnSignal, the default hook 'signals', handle it."
            )
        if shutil.which(COMMAND) is None:
            raise HookError(
                f"Requeue: there is no '{COMMAND}' on the PATH, so job {job} cannot be requeued. "
                "In a container, make SLURM's commands visible, or requeue from the batch script."
            )

    def after_run(self, run: Run) -> None:
        # The first rank asks for the whole job, after the checkpoints of all ranks are written.
        job, outcome = job_of(os.environ), run.outcome
        if job is None or outcome.status != "interrupted":
            return
        if outcome.signal not in self.signals:
            return
        restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)  # Not set in the first run.
        if self.max_restarts is not None and restarts >= self.max_restarts:
            _log.warning(
                "Job %s was already restarted %d times, so it is not requeued (max_restarts).",
                job,
                restarts,
            )
            return
        for log in current_logs():  # Before: SLURM may end this process at once.
            log.note(f"returning job {job} to the queue, for its restart {restarts + 1}")
        _requeue(job)


def job_of(environment: Mapping[str, str]) -> str | None:
    """Return SLURM's name of this job, or None outside of SLURM.

    The last task of an array has the job number of the whole array, and requeueing that number
    would requeue all tasks, so a task is named by its array and index.

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
        answer = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise ChildProcessError(f"job {job} could not be requeued: {answer}")
