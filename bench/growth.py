"""Measure how the cost grows with hooks, with parameters and with the length of a run."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time, thread_time

import torch
from torch import Tensor, nn

from bench import ours
from bench.race import difference, race
from bench.tiny import Case, Work
from hookloop import Hook, Run, Trainer


@dataclass(frozen=True)
class Step:
    """One row: a count, and the microseconds per iteration that it costs."""

    what: str
    count: int
    value: float
    note: str = ""


def measure_hooks(rounds: int) -> list[Step]:
    """Add hooks that do nothing at iterations, and hooks with an empty method there."""
    steps: list[Step] = []
    for what in ("idle", "empty"):
        counts = (0, 10, 100, 1000)
        engines = {str(count): _with(**{what: count}) for count in counts}
        none, *results = race(Case(what), engines, rounds)
        for count, result in zip(counts[1:], results, strict=True):
            _, extra, _ = difference(result, none)
            steps.append(Step(f"{what} hooks", count, extra, "more than without hooks"))
    return steps


def _with(**hooks: int) -> Callable[[Work], None]:
    def train(work: Work) -> None:
        case = Case("grown", **hooks)  # type: ignore[arg-type]
        ours.train(Work(case, work.model, work.iterations, work.data, work.folder))

    return train


class Parts(nn.Module):
    """A model of many tensors."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(count)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Use every part."""
        return torch.cat(list(self.parts)).sum() * inputs.mean()


def measure_parameters(counts: tuple[int, ...]) -> list[Step]:
    """Train models of more and more tensors, by hand and with hookloop, in turns."""
    steps = []
    for count in counts:
        iterations = max(4, 2000 // count)
        spent: dict[str, list[float]] = {"hand": [], "ours": []}
        for _ in range(9):
            spent["hand"].append(_parts_by_hand(count, iterations))
            spent["ours"].append(_parts_by_ours(count, iterations))
        hand, own = median(spent["hand"][1:]), median(spent["ours"][1:])
        steps.append(Step("tensors", count, own, f"by hand {hand:.1f}, {own / hand:.3f}x"))
    return steps


def _parts_by_hand(count: int, iterations: int) -> float:
    model = Parts(count)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch, begin = torch.ones(1), 0.0
    for iteration in range(iterations + 2):
        if iteration == 2:
            begin = thread_time()
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
    return (thread_time() - begin) / iterations * 1e6


def _parts_by_ours(count: int, iterations: int) -> float:
    model = Parts(count)
    times: list[float] = []
    trainer = Trainer(
        model,
        train_data=[torch.ones(1)] * (iterations + 2),
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3),
        max_epochs=1,
        device="cpu",
        default_hooks=False,
        run_dir=Path(tempfile.mkdtemp()) / "run",
    )
    trainer.on("after_train_iter")(lambda run: times.append(thread_time()))
    trainer.train()
    return (times[-1] - times[1]) / iterations * 1e6


class Marks(Hook):
    """Records time and memory at the thousandth, ten-thousandth, ... iteration."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._since, self._at = 0.0, 0

    def after_train_iter(self, run: Run) -> None:
        """Record the time per iteration since the last power of ten, at the next one."""
        iteration = run.progress.iter
        if iteration not in (100, *(10**power for power in range(3, 8))):
            return
        now = process_time()
        if iteration > 100:
            gc.collect()
            note = f"{sys.getallocatedblocks()} blocks, {_megabytes():.0f} MB"
            per_iteration = (now - self._since) / (iteration - self._at) * 1e6
            self.steps.append(Step("iterations", iteration, per_iteration, note))
        self._since, self._at = process_time(), iteration  # Read again: collecting took time.


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096 / 2**20


def measure_length(iterations: int) -> list[Step]:
    """Train for long with the default hooks; time and memory must not grow with the length."""
    marks = Marks()
    with tempfile.TemporaryDirectory() as folder:
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        batch = (torch.ones(2, 1), torch.zeros(2, 1))
        Trainer(
            model,
            train_data=[batch] * 1000,
            loss=nn.MSELoss(),
            optimizer=optimizer,
            schedule=torch.optim.lr_scheduler.StepLR(optimizer, 1000),
            max_iters=iterations,
            device="cpu",
            default_hooks={"console": None, "checkpoint": None},
            hooks=[marks],
            run_dir=Path(folder) / "run",
        ).train()
    return marks.steps
