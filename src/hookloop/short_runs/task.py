"""A short run in a process of its own, or on ranks: for what must be new, or die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hookloop.errors import HookloopError
from hookloop.parallel.launch import Attempt, threads_of_ranks
from hookloop.parallel.launched import (
    end_with,
    join_launcher,
    read_reports,
    report_end,
    report_failure,
)
from hookloop.parallel.processes import Starter
from hookloop.parallel.rendezvous import Layout, Rendezvous
from hookloop.parallel.verdict import find_cause

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows has no SIGKILL; there, SIGTERM ends a process as suddenly."""

KILLED = -KILL if hasattr(signal, "SIGKILL") else int(KILL)
"""The exit code of a killed process; on Windows, the number of the signal that ends it."""

PARENT = "HOOKLOOP_TASK"
"""The variable with the process that waits for a task."""


@dataclass(frozen=True)
class TrainingTask:
    """What a process trains, as JSON.

    Attributes:
        work: What is done, by the name that the module of the process knows.
        config: The config file.
        overrides: Changes to it.
        aliases: The systems whose packages are replaced.
        run_dir: The directory of the run; what is found is written beside it.
        iters: The number of iterations to train.
        ranks: The number of processes.
        options: What else the work needs.
    """

    work: str
    config: str
    overrides: Sequence[str]
    aliases: Sequence[str]
    run_dir: str
    iters: int
    ranks: int = 1
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def result_file(self) -> Path:
        """Where the process writes what it has found."""
        return Path(self.run_dir).with_suffix(".json")

    @property
    def reports(self) -> Path:
        """Where ranks report; it outlives a launcher that is killed."""
        return Path(self.run_dir).with_suffix(".ranks")


@dataclass(frozen=True)
class Ended:
    """How the process of a task ended.

    Attributes:
        code: Its exit code.
        output: What it said, on both streams.
        result: What it found; None if it did not get that far.
    """

    code: int
    output: str
    result: object = None

    @property
    def failure(self) -> HookloopError:
        """The error for a training that failed, with the end of its output."""
        tail = "\n".join(self.output.splitlines()[-20:])
        return HookloopError(f"The training ended with exit code {self.code}:\n{tail}")


def run_task(
    module: str, task: TrainingTask, started: Callable[[int], None] | None = None
) -> Ended:
    """Train in a new process, and wait for its end, of which nothing is left running.

    Args:
        module: What the process runs: it gets the task as JSON, and calls `work_on`.
        task: The task.
        started: Called with the number of the process.
    """
    task.result_file.unlink(missing_ok=True)
    said = Path(task.run_dir).with_suffix(".log")
    # A file and not a pipe, which processes that load data would keep open after a kill.
    with (
        said.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(asdict(task))],
            env={**os.environ, **threads_of_ranks(task.ranks), PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,  # In one file, so that the last lines are the last ones.
            start_new_session=True,  # A group of its own, which is ended as a whole.
        ) as process,
    ):
        if started is not None:
            started(process.pid)
        try:
            process.wait()
        finally:
            _end_all([process.pid, *(one.pid for one in read_reports(task.reports).values())])
    result = None
    if task.result_file.is_file():
        result = json.loads(task.result_file.read_text(encoding="utf-8"))
    said_all = said.read_text(encoding="utf-8", errors="replace")
    return Ended(process.returncode, said_all, result)


def _end_all(leaders: Sequence[int]) -> None:
    """End what a process and its ranks have left: those that load data notice a kill late."""
    for leader in leaders if os.name != "nt" else ():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, KILL)


def work_on(module: str, work: Callable[[TrainingTask], object]) -> None:
    """Do what the command line says, on ranks if there are several, and write what is found.

    Args:
        module: The module that was started, for the ranks.
        work: Does it, and returns what is found.
    """
    join_launcher()
    # Another process may have started this one for it, which then ends it.
    if os.environ.pop(PARENT, None) == str(os.getppid()):
        end_with(os.getppid())
    task = TrainingTask(**json.loads(sys.argv[1]))
    if (task.ranks > 1 or task.options.get("restarts")) and "RANK" not in os.environ:
        sys.exit(_launch(module, task))
    try:
        found = work(task)
    except BaseException as error:
        report_failure(error, 1)
        raise
    if os.environ.get("RANK", "0") == "0":
        task.result_file.write_text(json.dumps(found), encoding="utf-8")
    report_end(0)


def _launch(module: str, task: TrainingTask) -> int:
    """Start a task on ranks, as often as it says; if one is killed in the end, end as it did."""
    import torch._dynamo  # noqa: F401 - every optimizer imports it: here, and not in each rank

    task.reports.mkdir(exist_ok=True)
    command = ["-m", module, sys.argv[1]]
    rendezvous = Rendezvous(Layout(task.ranks))
    with Starter() as starter:
        starter.fork_from_here()
        for number in range(int(str(task.options.get("restarts") or 0)) + 1):
            for old in task.reports.glob("rank-*.json"):
                old.unlink()  # Its number may by now be that of another process.
            ended = Attempt(command, rendezvous, task.reports, number, starter).run()
            if not ended.codes or ended.signal is not None:
                break
    if -KILL in ended.codes.values():
        os.kill(os.getpid(), KILL)
    cause = find_cause(ended)
    if cause is not None:
        sys.stderr.write("\n".join((cause.traceback, *cause.messages)))
    return cause.code if cause is not None else 0
