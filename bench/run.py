"""Measure what the engine costs over a hand-written loop: ``make bench``.

The same model (a perceptron 16-16-1), data (batches of 8) and optimizer (SGD) are trained by a
hand-written loop and by a `Trainer`, in segments that take turns, on one CPU thread; once with the
batches ready in a list, which leaves the loop alone, and once with a DataLoader over a
TensorDataset. The clock runs from the request for the first batch to the end of the data, so
neither building the Trainer nor closing the run is counted; it is the thread's own time, so that
what else the machine does counts less. At the end the weights of all must agree bit for bit;
otherwise the loops did not do the same work and nothing is reported.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from time import thread_time
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from hookloop import Hook, Trainer
from hookloop.core.plan import Plan, fire
from hookloop.core.points import PointTable

Batches = Iterable[list[Tensor]]
Train = Callable[["Racer"], None]


@dataclass(frozen=True)
class Figure:
    """One measured line of the table."""

    what: str
    value: float
    unit: str
    note: str = ""


class Clock(Protocol):
    """Something that every batch passes, and that notes how long the last pass took."""

    seconds: float


class TimedList(list[list[Tensor]]):
    """Batches that are ready."""

    seconds = 0.0

    def __iter__(self) -> Iterator[list[Tensor]]:
        begin = thread_time()
        yield from super().__iter__()
        self.seconds = thread_time() - begin


class TimedOrder(Sampler[int]):
    """The order in which a DataLoader loads samples."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.seconds = 0.0

    def __iter__(self) -> Iterator[int]:
        begin = thread_time()
        yield from range(self.samples)
        self.seconds = thread_time() - begin

    def __len__(self) -> int:
        return self.samples


def in_a_list(inputs: Tensor, targets: Tensor) -> tuple[Batches, Clock]:
    """Prepare the batches beforehand."""
    pairs = zip(inputs.view(-1, 8, 16).unbind(), targets.view(-1, 8, 1).unbind(), strict=True)
    batches = TimedList(list(pair) for pair in pairs)
    return batches, batches


def from_a_loader(inputs: Tensor, targets: Tensor) -> tuple[Batches, Clock]:
    """Load the batches as most people do."""
    order = TimedOrder(len(inputs))
    data = TensorDataset(inputs, targets)
    loader: DataLoader[list[Tensor]] = DataLoader(data, batch_size=8, sampler=order)  # type: ignore[arg-type]
    return loader, order


class Racer:
    """One way to train, with a model and optimizer that live through all its segments."""

    def __init__(self, name: str, train: Train, data: tuple[Batches, Clock], batches: int) -> None:
        torch.manual_seed(0)
        self.name = name
        self.train = train
        self.batches, self.clock = data
        self.num_batches = batches
        self.model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.times: list[float] = []

    def run_segment(self) -> None:
        """Train over the data once and keep the microseconds per iteration."""
        self.train(self)
        self.times.append(self.clock.seconds / self.num_batches * 1e6)


def by_hand(racer: Racer) -> None:
    """Train one epoch with the loop that everybody writes."""
    model, optimizer, loss_of = racer.model, racer.optimizer, nn.MSELoss()
    model.train()
    for inputs, targets in racer.batches:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()


def without_hooks(racer: Racer) -> None:
    """Train one epoch with a Trainer and no hook at all."""
    with tempfile.TemporaryDirectory() as folder:
        _trainer(racer, folder, False).train()


def with_default_hooks(racer: Racer) -> None:
    """Train one epoch with the standard set of hooks, as a user who changes nothing."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        _trainer(racer, folder, None).train()


def _trainer(racer: Racer, folder: str, default_hooks: Literal[False] | None) -> Trainer:
    return Trainer(
        model=racer.model,
        train_data=racer.batches,
        loss=nn.MSELoss(),
        optimizer=racer.optimizer,
        max_epochs=1,
        device="cpu",
        default_hooks=default_hooks,
        run_dir=Path(folder) / "run",
    )


WAYS: dict[str, Train] = {
    "hand-written loop": by_hand,
    "Trainer, no hooks": without_hooks,
    "Trainer, default hooks": with_default_hooks,
}


def race(
    title: str,
    make_data: Callable[[Tensor, Tensor], tuple[Batches, Clock]],
    *,
    segments: int,
    batches: int,
) -> list[Figure]:
    """Let the ways to train take turns, and compare each segment with its neighbour by hand."""
    inputs = torch.randn(8 * batches, 16, generator=torch.Generator().manual_seed(0))
    targets = inputs.sum(dim=1, keepdim=True)
    racers = [Racer(name, way, make_data(inputs, targets), batches) for name, way in WAYS.items()]
    order = random.Random(0)
    for _ in range(segments + 1):
        # Whoever comes after a Trainer finds other things in the caches, so the order changes.
        for racer in order.sample(racers, len(racers)):
            racer.run_segment()
    hand, *others = racers
    base = hand.times[1:]  # The first segment warms up.
    figures = [Figure(f"{title}: {hand.name}", median(base), "us/iter")]
    for other in others:
        _check_same_weights(hand, other)
        extra = [theirs - mine for theirs, mine in zip(other.times[1:], base, strict=True)]
        low, middle, high = quantiles(extra, n=4)
        note = f"{middle:+.2f} us (quartiles {low:+.2f}, {high:+.2f})"
        figures.append(Figure(f"{title}: {other.name}", median(other.times[1:]), "us/iter", note))
    return figures


def _check_same_weights(hand: Racer, other: Racer) -> None:
    for mine, theirs in zip(hand.model.parameters(), other.model.parameters(), strict=True):
        if not torch.equal(mine, theirs):
            raise SystemExit(f"{other.name}: the weights differ from the hand-written loop's.")


def empty_point(repeats: int = 21, number: int = 200_000) -> Figure:
    """Measure firing a point at which no hook acts, though the plan has a hook."""

    class Elsewhere(Hook):
        def after_epoch(self, run: object) -> None: ...

    names = {"fire": fire, "plan": Plan([Elsewhere()], PointTable()), "run": None}
    timer = timeit.Timer("fire(plan.after_train_iter, run)", timer=thread_time, globals=names)
    times = timer.repeat(repeats, number)
    return Figure("empty mount point", median(times) / number * 1e9, "ns")


def main() -> None:
    """Measure, print the table, and write it as JSON if asked to."""
    parser = argparse.ArgumentParser(description="Measure what the engine costs.")
    parser.add_argument("--segments", type=int, default=80, help="turns of each loop")
    parser.add_argument("--batches", type=int, default=250, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = {"segments": options.segments, "batches": options.batches}
    figures = [
        empty_point(),
        *race("list", in_a_list, **sizes),
        *race("DataLoader", from_a_loader, **sizes),
    ]
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, one thread, medians")
    for figure in figures:
        print(f"{figure.what:36} {figure.value:8.2f} {figure.unit:8} {figure.note}".rstrip())
    print("weights: equal, bit for bit")
    if options.json:
        content = {"torch": torch.__version__, "figures": [asdict(figure) for figure in figures]}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
