"""Compare hookloop with a hand-written loop on common kinds of data: ``python -m bench.kinds``.

For each kind a hand-written loop (twice: the difference of the two is the noise), hookloop without
hooks, and hookloop with all its default hooks train in turns (race.py). The hand-written loop only
makes the updates, while hookloop logs, times and saves. With workers the processor time is that of
the training process; the time of the workers is only part of the wall time.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import quantiles
from typing import cast

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
)

from bench.race import Result, Train, difference, mean_of, race, typical
from bench.tiny import BATCH, Case, Work
from hookloop import Run, Trainer
from hookloop.hooks import ShowProgress

Pair = tuple[Tensor, Tensor]


class Own(Dataset[Pair]):
    """A data set as users write it."""

    def __init__(self, data: TensorDataset) -> None:
        self.inputs, self.targets = data.tensors

    def __getitem__(self, index: int) -> Pair:
        return self.inputs[index], self.targets[index]

    def __len__(self) -> int:
        return len(self.inputs)


class OwnDicts(Own):
    """A data set whose samples are dicts."""

    def __getitem__(self, index: int) -> dict[str, Tensor]:  # type: ignore[override]
        inputs, targets = super().__getitem__(index)
        return {"inputs": inputs, "targets": targets}


class OwnStream(IterableDataset[Pair]):
    """A data set that is read from start to end."""

    def __init__(self, data: TensorDataset) -> None:
        self.data = Own(data)

    def __iter__(self) -> Iterator[Pair]:
        return (self.data[index] for index in range(len(self.data)))


class Shuffled(Sampler[int]):
    """Draws its order when a pass begins."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(0)
        yield from torch.randperm(self.count, generator=generator).tolist()

    def __len__(self) -> int:
        return self.count


class DrawnAsItGoes(Shuffled):
    """Draws each index when it is needed, from the global generators."""

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.count):
            yield (random.randrange(self.count) + int(torch.randint(9, ()))) % self.count


class Batches(Sampler[list[int]]):
    """Yields whole batches."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[list[int]]:
        order = list(Shuffled(self.count))
        for begin in range(0, self.count, BATCH):
            yield order[begin : begin + BATCH]

    def __len__(self) -> int:
        return self.count // BATCH


class Reacting(Shuffled):
    """Prefers some samples to others, by numbers that the training may change."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.losses = torch.ones(1000)

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.count // BATCH):
            yield from torch.multinomial(self.losses, BATCH).tolist()


def collate(samples: list[Pair]) -> Pair:
    """Stack samples as users do it."""
    inputs, targets = zip(*samples, strict=True)
    return torch.stack(inputs), torch.stack(targets)


def weighted(data: TensorDataset) -> DataLoader[Pair]:
    """Draw samples by weights."""
    count, generator = len(data), torch.Generator().manual_seed(0)
    weights = torch.rand(count, generator=generator).tolist()
    return _own(data, sampler=WeightedRandomSampler(weights, count, generator=generator))


def _own(data: TensorDataset, **options: object) -> DataLoader[Pair]:
    return DataLoader(Own(data), batch_size=BATCH, **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Kind:
    """A kind of data.

    Attributes:
        load: Makes the loader.
        repeats: Whether all trainings see the same samples, which global generators prevent.
    """

    load: Callable[[TensorDataset], Iterable[object]]
    repeats: bool = True


KINDS = {
    "tensors in memory": Kind(lambda data: DataLoader(data, batch_size=BATCH)),
    "list of batches": Kind(lambda data: list(DataLoader(data, batch_size=BATCH))),
    "own data set": Kind(_own),
    "own data set, shuffled": Kind(lambda data: _own(data, shuffle=True), repeats=False),
    "dict batches": Kind(lambda data: DataLoader(OwnDicts(data), batch_size=BATCH)),
    "own collate_fn": Kind(lambda data: _own(data, collate_fn=collate)),
    "own sampler": Kind(lambda data: _own(data, sampler=Shuffled(len(data)))),
    "own sampler, draws as it goes": Kind(
        lambda data: _own(data, sampler=DrawnAsItGoes(len(data))), repeats=False
    ),
    "own sampler, reacts": Kind(
        lambda data: _own(data, sampler=Reacting(len(data))), repeats=False
    ),
    "own batch sampler": Kind(lambda data: DataLoader(Own(data), batch_sampler=Batches(len(data)))),
    "weighted sampler": Kind(weighted),
    "iterable data set": Kind(lambda data: DataLoader(OwnStream(data), batch_size=BATCH)),
    "2 workers": Kind(lambda data: _own(data, num_workers=2)),
    "2 workers, own sampler": Kind(
        lambda data: _own(data, num_workers=2, sampler=Shuffled(len(data)))
    ),
}


def parts(batch: object) -> Pair:
    """Return inputs and targets of a batch."""
    if isinstance(batch, dict):
        return batch["inputs"], batch["targets"]
    inputs, targets = cast("Pair", batch)
    return inputs, targets


def by_hand(kind: Kind) -> Train:
    """Return the hand-written loop."""

    def train(work: Work) -> None:
        model, optimizer, loss_of = work.model, work.optimizer(), nn.MSELoss()
        model.train()
        for batch in kind.load(work.data):
            inputs, targets = parts(batch)
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()

    return train


def ours(kind: Kind, *, is_default: bool) -> Train:
    """Return hookloop, with all of its default hooks or with none."""
    loss_of = nn.MSELoss()

    def step(run: Run, batch: object) -> Tensor:
        inputs, targets = parts(batch)
        loss: Tensor = loss_of(run.model(inputs), targets)
        return loss

    def train(work: Work) -> None:
        data = kind.load(work.data)
        is_plain = kind is not KINDS["dict batches"]
        Trainer(
            work.model,
            train_data=data,
            loss=loss_of if is_plain else None,
            step=None if is_plain else step,
            optimizer=work.optimizer(),
            max_epochs=1,
            device="cpu",
            default_hooks={"console": ShowProgress(file=io.StringIO())} if is_default else False,
            run_dir=work.folder / "run",
        ).train()

    return train


def race_kinds(rounds: int, names: Iterable[str] = KINDS) -> dict[str, list[Result]]:
    """Let both train on each kind of data."""
    results: dict[str, list[Result]] = {}
    for name in names:
        kind = KINDS[name]
        print(f"{name} ...", file=sys.stderr)
        hand = by_hand(kind)
        found = race(
            Case(name),
            {
                "by hand": hand,
                "by hand again": hand,
                "no hooks": ours(kind, is_default=False),
                "all defaults": ours(kind, is_default=True),
            },
            rounds,
        )
        for result in found:
            result.same_weights |= not kind.repeats
        results[name] = found
    return results


HEAD = f"{'':31}{'by hand':>9}{'noise':>7}{'no hooks':>10}{'defaults':>10}   of the fastest tenth:"


def show(results: dict[str, list[Result]]) -> None:
    """Print how much longer hookloop takes than the hand-written loop, in microseconds.

    First the medians of the differences within a round; then the differences between the fastest
    tenth of the turns, which a busy machine disturbs least.
    """
    for name, (hand, again, *others) in results.items():
        base = mean_of(hand, again)
        line = f"{name:31}{typical(hand):9.0f}{difference(again, hand)[1]:+7.1f}"
        for result in others:
            line += result.error or f"{difference(result, base)[1]:+10.1f}"
            line += "" if result.same_weights else " OTHER WEIGHTS"
        quick = [fastest(result) for result in (hand, again, *others)]
        line += f"{quick[0]:9.0f}{quick[1] - quick[0]:+7.1f}"
        print(line + "".join(f"{time - min(quick[:2]):+9.1f}" for time in quick[2:]), flush=True)


def fastest(result: Result) -> float:
    """Return the time of an iteration in the fastest tenth of the turns."""
    return quantiles(result.cpu, n=10)[0]


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(KINDS), metavar="kind")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(HEAD, flush=True)
    for name in options.names:
        show(race_kinds(options.rounds, [name]))


if __name__ == "__main__":
    main()
