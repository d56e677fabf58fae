"""The trials of ``make faults RANKS=4``: kill a training on many ranks, and compare every bit."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import nn
from torch.utils.data import DataLoader

from fault_trials.bench import final_checkpoint, read_metrics
from fault_trials.forked_ranks import LaunchedRanks, adopt_orphans
from fault_trials.process import TrialFailed
from fault_trials.training import Noisy
from hookloop import Hook, Trainer
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.run import Run
from hookloop.hooks import AverageWeights, SaveCheckpoint, WriteMetrics

STRATEGIES = ("replicated", "sharded")
KILLED = 128 + signal.SIGKILL
MOMENTS = ("any time", "training", "save", "validation")
"""When to strike: by the clock, also while the ranks start, or at a point of the training."""


@dataclass(frozen=True)
class Blow:
    """One kill.

    Attributes:
        who: ``"rank 2"``, ``"all ranks"`` or ``"launcher"``.
        moment: One of `MOMENTS`.
        after: The iterations to complete before it, in this process.
        delay: The seconds between the moment and the kill.
    """

    who: str
    moment: str
    after: int
    delay: float


class Strike(Hook):
    """Deals a blow to the process it runs in, or to the launcher."""

    draws_random_numbers = False

    def __init__(self, blow: Blow) -> None:
        self.blow = blow
        self._begun = 0

    def before_train(self, run: Run) -> None:
        """Remember where this process began."""
        self._begun = run.progress.iter

    def after_update(self, run: Run) -> None:
        """Strike in the training."""
        self._strike(run, "training")

    def after_val_iter(self, run: Run) -> None:
        """Strike in a validation."""
        self._strike(run, "validation")

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        """Leave no trace in the checkpoint, which may be the last one; strike during a save."""
        cast("dict[str, object]", checkpoint["hooks"]).pop(self.name, None)
        self._strike(run, "save")

    def _strike(self, run: Run, moment: str) -> None:
        if moment == self.blow.moment and run.progress.iter >= self._begun + self.blow.after:
            threading.Timer(self.blow.delay, self._kill, (run.world.rank,)).start()

    def _kill(self, rank: int) -> None:
        if self.blow.who == "launcher":
            os.kill(os.getppid(), signal.SIGKILL)  # The ranks end with it.
        elif self.blow.who in ("all ranks", f"rank {rank}"):
            os.kill(os.getpid(), signal.SIGKILL)


def make_trainer(run_dir: Path, strategy: str, epochs: int, blow: Blow | None = None) -> Trainer:
    """Build the training that the kills disturb; it resumes if there is a checkpoint."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Each strategy has its own difficulties. Replicas: statistics of batch norm, which needs two
    # samples for each rank, and workers, each a process more. Shards: a last batch of one sample.
    is_sharded, size = strategy == "sharded", int(os.environ["WORLD_SIZE"])
    norm: nn.Module = nn.LayerNorm(32) if is_sharded else nn.BatchNorm1d(32)
    samples, batch_size = (41, 8) if is_sharded else (6 * (3 * size - 1), 3 * size - 1)
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.3), norm, nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return Trainer(
        model,
        train_data=DataLoader(
            Noisy(samples), batch_size, shuffle=True, num_workers=0 if is_sharded else 1
        ),
        val_data=DataLoader(Noisy(13), batch_size=6),
        loss=nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999),
        max_epochs=epochs,
        hooks=[AverageWeights(momentum=0.05), *([Strike(blow)] if blow is not None else [])],
        default_hooks={
            "console": None,
            "checkpoint": SaveCheckpoint(2, keep=2, best="val/loss"),
            "metrics": WriteMetrics(every=1),
        },
        run_dir=run_dir,
        resume="auto",
        seed=7,
        device="cpu",
        parallel={"strategy": strategy, "timeout": 20},
    )


@dataclass
class RanksBench:
    """Undisturbed runs on ranks, which are compared with every disturbed one.

    Attributes:
        root: Directory of all runs.
        size: The number of ranks.
        epochs: Length of a training.
        random: Chooses whom to kill, and when.
        counts: How often something happened.
    """

    root: Path
    size: int
    epochs: int
    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        adopt_orphans()
        self.seconds: dict[str, float] = {}
        for strategy in STRATEGIES:
            began = time.monotonic()
            self.run(self.root / strategy, strategy)
            self.seconds[strategy] = time.monotonic() - began

    def start(self, run_dir: Path, strategy: str, blow: Blow | None = None) -> LaunchedRanks:
        """Start or resume a training."""
        return LaunchedRanks(
            run_dir, self.size, lambda: make_trainer(run_dir, strategy, self.epochs, blow)
        )

    def run(self, run_dir: Path, strategy: str) -> None:
        """Train to the end; fail if the exit code is not 0."""
        ranks = self.start(run_dir, strategy)
        if code := ranks.finish():
            raise TrialFailed(f"{run_dir.name}: exit code {code}:\n{ranks.tail()}")

    def choose(self, strategy: str) -> Blow:
        """Choose whom to kill, and when."""
        draw = self.random
        whom = (*(f"rank {rank}" for rank in range(self.size)), "all ranks", "launcher")
        moment = draw.choice(MOMENTS)
        latest = 0.6 * self.seconds[strategy] if moment == "any time" else 0.03
        return Blow(draw.choice(whom), moment, draw.randint(0, 10), draw.uniform(0.0, latest))

    def strike(self, run_dir: Path, strategy: str, blow: Blow) -> int:
        """Train, and kill at the chosen moment; return the launcher's exit code."""
        ranks = self.start(run_dir, strategy, blow)
        if blow.moment == "any time" and not ranks.wait(blow.delay):
            while not ranks.kill(blow.who) and not ranks.wait(0.01):
                pass  # The rank has not started yet.
        code = ranks.finish()
        if code not in (0, KILLED, -signal.SIGKILL):
            raise TrialFailed(
                f"{run_dir.name}: exit code {code} after a kill of {blow}:\n{ranks.tail()}"
            )
        return code

    def check_end(self, run_dir: Path, strategy: str) -> None:
        """Compare the end of a run with that of the undisturbed one."""
        differing = compare(final_checkpoint(self.root / strategy), final_checkpoint(run_dir))
        if differing:
            raise TrialFailed(f"{run_dir.name} ended differently: {'; '.join(map(str, differing))}")
        if read_metrics(self.root / strategy) != read_metrics(run_dir):
            raise TrialFailed(f"{run_dir.name}: its metrics.jsonl differs from the undisturbed one")


def kill_ranks(bench: RanksBench, strategy: str, kills: int) -> str:
    """Kill a training on ranks until it was killed often enough, then let it end."""
    done, whole, resumes, began = Counter[str](), 0, 0, time.monotonic()
    furthest, run_dir = 0, bench.root / f"{strategy}_killed_0"
    while True:
        is_last = done.total() >= kills
        blow = bench.choose(strategy)
        resumes += furthest > 0
        if is_last:
            bench.run(run_dir, strategy)
        elif bench.strike(run_dir, strategy, blow) != 0:
            done[blow.who if not blow.who.startswith("rank") else "one rank"] += 1
            bench.counts[blow.moment] += 1
            furthest = _check_killed_run(run_dir, furthest)
            continue
        bench.check_end(run_dir, strategy)
        whole += 1
        if is_last:
            break
        furthest, run_dir = 0, bench.root / f"{strategy}_killed_{whole}"
    seconds = time.monotonic() - began
    return (
        f"{done.total()} kills ({_listed(done)}), {resumes} resumes, {whole} whole runs, "
        f"0 failures in {seconds:.0f} s; all ended bit-equal"
    )


def _check_killed_run(run_dir: Path, furthest: int) -> int:
    """Return how far a killed run had come; what was once durable must stay so."""
    found = CheckpointStore(run_dir).newest()
    reached = 0
    if found is not None:
        reached = int(cast("Mapping[str, int]", found[1]["progress"])["iter"])
    if reached < furthest:
        raise TrialFailed(f"{run_dir.name} went back from iteration {furthest} to {reached}")
    return reached


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items()))


def run_rank_trials(root: Path, size: int, kills: int, seed: int) -> None:
    """Kill trainings with replicas and with shards; the first difference raises."""
    bench = RanksBench(root, size, 8 if kills >= 20 else 2, random.Random(seed))
    for strategy, seconds in bench.seconds.items():
        print(f"undisturbed on {size} ranks, {strategy}: {seconds:.1f} s", flush=True)
    for index, strategy in enumerate(STRATEGIES):
        share = kills // 2 + (index < kills % 2)
        print(f"{strategy}: {kill_ranks(bench, strategy, share)}", flush=True)
    print(f"moments: {_listed(bench.counts)}")
