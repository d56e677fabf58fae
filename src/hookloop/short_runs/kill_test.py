"""Send signals to random ranks at random moments, and compare the end with an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.checkpoint.state.compare import Difference, compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.errors import HookloopError
from hookloop.parallel.launched import read_reports
from hookloop.short_runs.short_run import Arguments
from hookloop.short_runs.task import KILL, TrainingTask, run_task
from hookloop.short_runs.verify_resume import save_interval, train_saving

if TYPE_CHECKING:
    from hookloop.engine.run import Run

FAULTS = ("SIGKILL", "SIGSTOP", "SIGTERM")
"""What is sent: SIGSTOP halts a rank for some seconds, the others end it."""

LONGEST_HALT = 3.0
"""Seconds for which a rank is halted at most."""

LOOK_EVERY = 0.05
"""Seconds between two looks at the ranks."""


@dataclass
class Fault:
    """A signal that was sent.

    Attributes:
        fault: Its name.
        rank: Who got it.
        after: Seconds since the first update of these ranks.
        iteration: That of the newest checkpoint then, from which the training continued.
        recovery: Seconds to the next update of the ranks that were started again.
        moment: When it was sent.
    """

    fault: str
    rank: int
    after: float
    iteration: int
    recovery: float | None = None
    moment: float = 0.0

    def __str__(self) -> str:
        again = "" if self.recovery is None else f", {self.recovery:.1f} s to the next update"
        place = f"newest checkpoint at {self.iteration}"
        return f"{self.fault} to rank {self.rank} after {self.after:.1f} s, {place}{again}"


@dataclass(frozen=True)
class Survived:
    """What was found.

    Attributes:
        iters: How many iterations the training has.
        faults: What was sent.
        rounds: How often the whole training was made under fire.
        differences: Where a final checkpoint differs from that of the undisturbed training.
    """

    iters: int
    faults: Sequence[Fault]
    rounds: int
    differences: Sequence[Difference] = ()


class KillTest:
    """Trains undisturbed, then under fire until all faults were sent, and compares.

    Args:
        module: What the processes run, see `run_task`.
        task: What is trained, on how many ranks; its directory is beside those of the runs.
        mean_time: Mean number of seconds between two faults.
        seed: Decides moments, ranks and signals.
        has_logical: Whether the config has logical ranks: the bits are those of one process.
        tell: Called with what is known on the way.
    """

    def __init__(
        self,
        module: str,
        task: TrainingTask,
        *,
        mean_time: float,
        seed: int,
        has_logical: bool = False,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._module = module
        self._folder = Path(task.run_dir).parent
        options = {"every": save_interval(task.iters), "kill": None}
        self._task = replace(task, run_dir=str(self._folder / "under_fire"), options=options)
        self._has_logical = has_logical
        self._mean_time = mean_time
        self._random = random.Random(seed)
        self._tell = tell
        self._faults: list[Fault] = []

    def run(self, faults: int) -> Survived:
        """Train, send so many signals, compare.

        Raises:
            HookloopError: If a training failed by itself.
        """
        alone = str(self._folder / "undisturbed")
        # With logical ranks the bits do not depend on the number of processes.
        ranks = 1 if self._has_logical else self._task.ranks
        ended = run_task(self._module, replace(self._task, run_dir=alone, ranks=ranks))
        if ended.code:
            raise ended.failure
        expected = _newest(Path(alone))
        iters = _iteration(expected)
        self._tell(f"undisturbed on {ranks}: {iters} iterations.")
        differences: list[Difference] = []
        rounds = 0
        options = {**self._task.options, "restarts": faults}
        self._task = replace(self._task, options=options)
        while len(self._faults) < faults and not differences:
            before, rounds = len(self._faults), rounds + 1
            self._make_round(faults)
            differences = compare(expected, _newest(Path(self._task.run_dir)))
            if len(self._faults) == before:  # It is too short for the time between two faults.
                break
            shutil.rmtree(self._task.run_dir)
        return Survived(iters, self._faults, rounds, differences)

    def _make_round(self, faults: int) -> None:
        """Train to the end; the launcher starts the ranks again after each fault that ends them."""
        note_of(Path(self._task.run_dir)).unlink(missing_ok=True)
        over = threading.Event()
        injector = threading.Thread(target=self._fire, args=(faults, over))
        injector.start()
        try:
            ended = run_task(self._module, self._task)
        finally:
            over.set()
            injector.join()
        if ended.code:
            raise ended.failure

    def _fire(self, faults: int, over: threading.Event) -> None:
        """Send signals, until all were sent or the training has ended."""
        note = note_of(Path(self._task.run_dir))
        ends: Fault | None = None  # The one that ended the last ranks.
        while True:
            # The clock starts with an update, so that a training that starts slowly gets on.
            while not note.is_file():
                if over.wait(LOOK_EVERY):
                    break
            if ends is not None:
                if note.is_file():
                    ends.recovery = _moment_in(note) - ends.moment
                self._tell(str(ends))
                ends = None
            if len(self._faults) >= faults or over.is_set():
                return
            fault = self._send(over)
            if fault is None:
                return
            if fault.fault == "SIGSTOP":
                self._tell(str(fault))
            else:
                ends = fault

    def _send(self, over: threading.Event) -> Fault | None:
        """Wait for a random time, and send a signal to a random rank; None if the run has ended."""
        pause = self._random.expovariate(1 / self._mean_time)
        name = self._random.choice(FAULTS)
        rank = self._random.randrange(self._task.ranks)
        halt = self._random.uniform(0.5, LONGEST_HALT)
        if over.wait(pause):
            return None
        while (victim := self._process_of(rank)) is None:
            if over.wait(LOOK_EVERY):
                return None
        note = note_of(Path(self._task.run_dir))
        iteration = _iteration(_newest(Path(self._task.run_dir)))
        now, begun = time.time(), _moment_in(note)
        if name != "SIGSTOP":
            note.unlink()  # The next one is that of the ranks that are started again.
        try:
            os.kill(victim, KILL if name == "SIGKILL" else getattr(signal, name))
        except ProcessLookupError:  # The training is complete.
            return None
        fault = Fault(name, rank, now - begun, iteration, moment=now)
        self._faults.append(fault)
        if name == "SIGSTOP":
            over.wait(halt)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
        return fault

    def _process_of(self, rank: int) -> int | None:
        """Return the process of a rank once all of them are there."""
        reports = read_reports(self._task.reports)
        ended = any(report.exit_code is not None for report in reports.values())
        return None if ended or len(reports) < self._task.ranks else reports[rank].pid


def _moment_in(note: Path) -> float:
    return float(note.read_text(encoding="utf-8"))


def _newest(run_dir: Path) -> dict[str, object]:
    found = CheckpointStore(run_dir).newest() if run_dir.is_dir() else None
    return found[1] if found is not None else {}


def _iteration(checkpoint: dict[str, object]) -> int:
    progress = checkpoint.get("progress")
    return int(progress["iter"]) if isinstance(progress, dict) else 0


def note_of(run_dir: Path) -> Path:
    """Return the file that says when the ranks of now made their first update."""
    return run_dir.with_suffix(".update")


# --- in the process that trains -------------------------------------------------------------------


class NoteFirstUpdate(Hook):
    """Writes down when the first update of this process was made."""

    draws_random_numbers = False
    ranks = "first"

    def __init__(self) -> None:
        self._is_noted = False

    def after_update(self, run: Run) -> None:
        """Write it."""
        if not self._is_noted:
            self._is_noted = True
            note, part = note_of(run.dir), run.dir.with_suffix(".part")
            part.write_text(str(time.time()), encoding="utf-8")
            part.replace(note)  # So that half of it is never read.


def train_under_fire(task: TrainingTask, make: Callable[..., Arguments]) -> list[str]:
    """Train as the task says, from the newest checkpoint.

    Args:
        task: The task.
        make: Returns the arguments of a Trainer, given ``run_dir`` and ``resume``.
    """
    return train_saving(task, make, [NoteFirstUpdate()])


def check_system() -> None:
    """Reject a system without the signals."""
    if os.name == "nt":
        raise HookloopError("kill-test needs SIGSTOP and SIGKILL, which Windows does not have.")
