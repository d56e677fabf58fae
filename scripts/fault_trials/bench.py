"""An undisturbed run, and the comparison of other runs with it."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch

from fault_trials.process import TrainingProcess, TrialFailed
from fault_trials.training import SMALL, Size, make_trainer
from hookloop import Hook
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.run import Run

CLOCKS = ("time", "/data_time", "/iter_time")


@dataclass
class Bench:
    """An undisturbed run, which is compared with every disturbed one.

    Attributes:
        root: Directory of all runs.
        size: Length of the training, and number of kills.
        seed: Seed of the random moments.
        counts: How often something happened.
    """

    root: Path
    size: Size
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.reference = self.root / "reference"
        self.random = random.Random(self.seed)
        _warm_up()
        began = time.monotonic()
        self.run(self.reference)
        self.seconds = time.monotonic() - began
        began = time.monotonic()
        self.kill_at(self.root / "first_iteration", 1)
        self.start_seconds = time.monotonic() - began
        summary = json.loads((self.reference / "summary.json").read_text())
        self.iterations, self.ending = summary["iter"], summary["reason"] or summary["status"]

    def start(self, run_dir: Path, **options: object) -> TrainingProcess:
        """Start or resume the training in a process of its own."""
        return TrainingProcess(run_dir, lambda: make_trainer(run_dir, self.size, **options))

    def run(self, run_dir: Path, expected: int = 0, **options: object) -> TrainingProcess:
        """Train to the end; fail if the exit code is not the expected one."""
        process = self.start(run_dir, **options)
        code = process.finish()
        if code != expected:
            raise TrialFailed(
                f"{run_dir.name}: exit code {code} instead of {expected}:\n{process.tail()}"
            )
        return process

    def check_end(self, run_dir: Path, *, store: Path | None = None) -> None:
        """Compare the end of a run with that of the undisturbed one.

        Args:
            run_dir: The run.
            store: Where its checkpoints are, if not in its directory.
        """
        undisturbed, disturbed = (
            final_checkpoint(self.reference),
            final_checkpoint(store or run_dir),
        )
        hooks = cast("dict[str, object]", disturbed["hooks"])
        for name in hooks.keys() - cast("dict[str, object]", undisturbed["hooks"]):
            del hooks[name]  # The hooks that caused the disturbance.
        differing = [
            difference
            for difference in compare(undisturbed, disturbed)
            # The hook that saves remembers which saves failed. The hooks that disturb the run use
            # mount points that no other hook uses.
            if not difference.key.startswith(("hooks.checkpoint.best", "side_randomness.drawn"))
        ]
        if differing:
            raise TrialFailed(f"{run_dir.name} ended differently: {'; '.join(map(str, differing))}")
        if read_metrics(self.reference) != read_metrics(run_dir):
            raise TrialFailed(
                f"{run_dir.name}: its metrics.jsonl differs from that of the undisturbed run"
            )

    def kill_at(self, run_dir: Path, iteration: int, **options: object) -> None:
        """Kill a run when this many iterations are saved."""
        process = self.start(run_dir, hooks=[DieAt(iteration)], **options)
        if (code := process.finish()) != -signal.SIGKILL:
            raise TrialFailed(
                f"{run_dir.name}: exit code {code} instead of a kill:\n{process.tail()}"
            )


def _warm_up() -> None:
    """Import what training needs, so that the forked processes need not do it."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(Path(folder) / "run", SMALL)
        loss = trainer.run.model(torch.zeros(2, 16)).sum()
        loss.backward()
        trainer.run.optimizer.step()


def final_checkpoint(store: Path) -> dict[str, object]:
    """Load the newest checkpoint of a store."""
    found = CheckpointStore(store).newest()
    if found is None:
        raise TrialFailed(f"'{store}' has no checkpoint")
    return found[1]


def read_metrics(run_dir: Path) -> list[dict[str, object]]:
    """Read the metrics of a run, without those that measure time."""
    records = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{key: one[key] for key in one if not key.endswith(CLOCKS)} for one in records]


class DieAt(Hook):
    """Kills its process when this many iterations are saved."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_save_checkpoint(self, run: Run, saved: Saved) -> None:
        """Die. The checkpoint counts, not the run, which may be an iteration further by then."""
        if saved.iter >= self.iteration:
            os.kill(os.getpid(), signal.SIGKILL)
