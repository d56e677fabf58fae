"""Trials that end the process: kills, signals and every way to leave a script."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from fault_trials.bench import Bench, final_checkpoint, read_metrics
from fault_trials.process import TrialFailed
from hookloop import Hook
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.run import Run


def kill_at_random(bench: Bench) -> str:
    """Kill the training at random moments until it was killed often enough, then let it end."""
    counts, run_dir = bench.counts, bench.root / "killed_1"
    furthest, began = 0, time.monotonic()
    while True:
        process = bench.start(run_dir)
        enough = counts["kills"] >= bench.size.kills
        # One in five may be killed before it has loaded its checkpoint, the others later.
        earliest = 0.0 if bench.random.random() < 0.2 else 0.7 * bench.start_seconds
        delay = bench.random.uniform(earliest, bench.start_seconds + 0.5)
        code = process.wait(None if enough else delay)
        if code is None:
            process.send(signal.SIGKILL)
            code = process.finish()
        if code == -signal.SIGKILL:
            counts["kills"] += 1
            furthest = _check_killed_run(run_dir, furthest, counts)
        elif code == 0:
            bench.check_end(run_dir)
            counts["whole runs"] += 1
            if counts["kills"] >= bench.size.kills:
                break
            run_dir, furthest = bench.root / f"killed_{counts['whole runs'] + 1}", 0
        else:
            raise TrialFailed(
                f"{run_dir.name}: a resume failed with exit code {code}:\n{process.tail()}"
            )
    seconds = time.monotonic() - began
    return (
        f"{counts['kills']} kills in {seconds:.0f} s ({counts['inside a write']} of them inside a "
        f"write, {counts['before any checkpoint']} before the first checkpoint); every resume "
        f"succeeded, {counts['whole runs']} runs of {bench.iterations} iterations ended bit-equal"
    )


def _check_killed_run(run_dir: Path, furthest: int, counts: Counter[str]) -> int:
    """Return how far a killed run had come; what was once durable must stay so."""
    if list(run_dir.glob(".*.staged")):
        counts["inside a write"] += 1
    found = CheckpointStore(run_dir).newest()
    if found is None:
        counts["before any checkpoint"] += 1
        reached = 0
    else:
        reached = int(found[1]["progress"]["iter"])  # type: ignore[index]
    if reached < furthest:
        raise TrialFailed(f"{run_dir.name} went back from iteration {furthest} to {reached}")
    return reached


SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")


class SignalAt(Hook):
    """Sends a signal to its own process, or to all of its group, after an iteration."""

    def __init__(self, iteration: int, number: signal.Signals, *, to_all: bool = False) -> None:
        self.iteration = iteration
        self.number = number
        self.to_all = to_all

    def after_train_iter(self, run: Run) -> None:
        """Send the signal."""
        if run.progress.iter == self.iteration:
            (os.killpg if self.to_all else os.kill)(os.getpid(), self.number)


def end_by_signals(bench: Bench) -> str:
    """Each signal: the last iteration is saved, and the exit code is 128 + its number."""
    for index, name in enumerate(SIGNALS):
        run_dir, number = bench.root / name, signal.Signals[name]
        bench.run(run_dir, 128 + number, hooks=[SignalAt(17, number, to_all=index % 2 == 1)])
        reached = final_checkpoint(run_dir)["progress"]["iter"]  # type: ignore[index]
        if reached != 17:
            raise TrialFailed(f"{name}: the checkpoint is of iteration {reached}, not of 17")
    bench.run(run_dir)
    bench.check_end(run_dir)
    names = ", ".join(SIGNALS)
    return f"{names}: exit code 128 + n, saved in the iteration of the signal; resumed bit-equal"


class EndAt(Hook):
    """Ends the training in one of the ways in which a script can end."""

    def __init__(self, way: str) -> None:
        self.way = way

    def after_train_iter(self, run: Run) -> None:
        """End it in the third iteration."""
        if run.progress.iter != 3 or self.way == "by itself":
            return
        if self.way == "with an exception":
            raise RuntimeError("the user's own")
        if self.way == "with sys.exit":
            sys.exit(3)
        if self.way == "with os._exit":
            os._exit(4)
        if self.way == "with Ctrl-C":
            raise KeyboardInterrupt
        number = signal.SIGKILL if self.way == "killed" else signal.SIGTERM
        (os.killpg if self.way == "with its group" else os.kill)(os.getpid(), number)


WAYS = {
    "by itself": 0,
    "with an exception": 1,
    "with sys.exit": 1,
    "with os._exit": 4,
    "with Ctrl-C": 1,
    "with SIGTERM": 143,
    "with its group": 143,
    "killed": -9,
}


def end_in_every_way(bench: Bench) -> str:
    """However the training ends, its workers end as well."""
    slowest = 0.0
    for index, (way, expected) in enumerate(WAYS.items()):
        run_dir = bench.root / f"ended_{index}"
        process = bench.start(run_dir, hooks=[EndAt(way)], persistent=True, end=5)
        code = process.wait(60, alone=True)
        if code != expected:
            raise TrialFailed(
                f"ended {way}: exit code {code} instead of {expected}:\n{process.tail()}"
            )
        began = time.monotonic()
        while process.has_processes():
            if time.monotonic() - began > 20:
                raise TrialFailed(f"ended {way}: it left processes behind")
            time.sleep(0.05)
        slowest = max(slowest, time.monotonic() - began)
    return f"{len(WAYS)} ways, with persistent workers: none left after {slowest:.1f} s at most"


class DieInValidation(Hook):
    """Kills its process between a save and its validation."""

    def before_val(self, run: Run) -> None:
        """Die once the checkpoint is listed, which happens after its file is there."""
        if run.progress.epoch == 2:
            name = f"iter_{run.progress.iter}.pth"
            while name not in CheckpointStore(run.dir).index.entries:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)


def kill_before_validation(bench: Bench) -> str:
    """Killed between save and validation: the entry gets the metrics of its own iteration."""
    run_dir = bench.root / "unvalidated"
    process = bench.start(run_dir, hooks=[DieInValidation()])
    if (code := process.finish()) != -signal.SIGKILL:
        raise TrialFailed(f"unvalidated: exit code {code} instead of a kill:\n{process.tail()}")
    newest = max(CheckpointStore(run_dir).index.entries.values(), key=lambda entry: entry.iter)
    if newest.validated or any(name.startswith("val/") for name in newest.metrics):
        raise TrialFailed(f"unvalidated: '{newest.name}' has a validation that did not happen")
    bench.kill_at(run_dir, newest.iter + 1)
    amended = CheckpointStore(run_dir).index.entries[newest.name]
    measured = [one for one in read_metrics(bench.reference) if one["iter"] == newest.iter]
    expected = next(one["val/loss"] for one in measured if one["phase"] == "val")
    if not amended.validated or amended.metrics.get("val/loss") != expected:
        raise TrialFailed(f"unvalidated: the entry has {amended.metrics} instead of {expected}")
    bench.run(run_dir)
    bench.check_end(run_dir)
    return "the resume added the validation to the entry of its own iteration; ended bit-equal"
