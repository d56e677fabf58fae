"""Compare trainings on several ranks: by hand, hookloop, Lightning, Accelerate.

All engines train on the same ranks, in turns within each process, so that a busy moment of the
machine affects all of them. A turn begins with a barrier and is timed on each rank. Ranks are
forked processes on this host, connected by gloo: figures are about the engine, not the network.

``python -m bench.ranks`` prints the table; `bench.run` does so too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep
from types import ModuleType
from typing import cast

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist

from bench.many.job import VALIDATED, Job, fork, kill_this_rank

ENGINES = {
    "by hand": ("by_hand", "torch"),
    "by hand again": ("by_hand", "torch"),
    "hookloop": ("ours", "hookloop"),
    "Lightning": ("lightning", "lightning"),
    "Accelerate": ("accelerate", "accelerate"),
}
SIZE = 2
WARM_UP, FIRST = 3, 12
"""Iterations before a turn is timed, and before the first turn."""


@dataclass(frozen=True)
class Contest:
    """A model, and how long its turns are."""

    name: str
    widths: tuple[int, ...]
    timed: int


CONTESTS = (
    Contest("MLP 16-16-1, global batch 8", (16, 16, 1), 50),
    Contest("MLP of 10 M parameters, global batch 8", (64, 2200, 2200, 2200, 1), 4),
)


@dataclass
class Times:
    """Microseconds per iteration of one engine, one value for each turn, of one rank."""

    name: str
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


@dataclass
class Facts:
    """Samples that an engine validates, and how it resumes, by the number of ranks."""

    name: str
    validated: int = 0
    resumed: dict[int, str] = field(default_factory=dict)


class Lane(threading.Thread):
    """One training that runs only when it is its turn."""

    def __init__(self, name: str, engine: ModuleType, job: Job, timed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.times, self.job, self.ended = Times(name), job, False
        self.engine, self._timed = engine, timed
        self._count, self._next, self._since = 0, FIRST, (0.0, 0.0)
        self._go, self._rests = threading.Semaphore(0), threading.Semaphore(0)

    def take_turn(self) -> None:
        """Let it run until it has been timed once, or has ended."""
        self._go.release()
        self._rests.acquire()

    def run(self) -> None:
        """Train."""
        self._go.acquire()
        try:
            self.engine.train(self.job)
        finally:
            self.ended = True
            self._rests.release()

    def notify(self) -> None:
        """Count a forward pass; a timed turn is the time between two of them."""
        self._count += 1
        if self._count == self._next:
            self._next += WARM_UP + self._timed
            now = process_time(), perf_counter()
            if self._count > FIRST:
                self.times.cpu.append((now[0] - self._since[0]) / self._timed * 1e6)
                self.times.wall.append((now[1] - self._since[1]) / self._timed * 1e6)
            self._rests.release()
            self._go.acquire()
        if self._count == self._next - self._timed:
            dist.barrier()
            self._since = process_time(), perf_counter()


def engines() -> dict[str, ModuleType]:
    """Return the engines that are installed."""
    return {
        name: import_module(f"bench.many.{module}")
        for name, (module, package) in ENGINES.items()
        if find_spec(package) is not None
    }


def race(contest: Contest, rounds: int, size: int = SIZE) -> dict[str, list[Times]]:
    """Let engines train in turns; return the times of each, one entry for each rank."""
    found = engines()
    with TemporaryDirectory() as folder:
        fork(lambda rank: _race(contest, rounds, found, rank, size, Path(folder)), size)
        of_ranks = [
            json.loads((Path(folder) / f"rank_{rank}.json").read_text()) for rank in range(size)
        ]
    return {
        name: [Times(**times) for rank in of_ranks for times in rank if times["name"] == name]
        for name in found
    }


def _race(
    contest: Contest,
    rounds: int,
    found: dict[str, ModuleType],
    rank: int,
    size: int,
    folder: Path,
) -> None:
    torch.set_num_threads(1)
    iterations = FIRST + rounds * (WARM_UP + contest.timed)
    lanes = []
    for number, (name, engine) in enumerate(found.items()):
        own = folder / str(number)
        own.mkdir(exist_ok=True)
        job = Job(rank, size, own, contest.widths, iterations)
        lane = Lane(name, engine, job, contest.timed)
        job.model.notify = lane.notify
        lanes.append(lane)
        lane.start()
        lane.take_turn()
    shuffled = random.Random(0)  # The same order on all ranks.
    for _ in range(rounds):
        for lane in shuffled.sample(lanes, len(lanes)):
            if not lane.ended:
                lane.take_turn()
    for lane in lanes:
        if not lane.ended:
            lane.take_turn()
        lane.join()
    check_weights(lanes)
    (folder / f"rank_{rank}.json").write_text(json.dumps([asdict(one.times) for one in lanes]))


def check_weights(lanes: list[Lane]) -> None:
    """Reject trainings that did other work: all saw the same global batches."""
    first = lanes[0].job.model.state_dict()
    for lane in lanes:
        if getattr(lane.engine, "ALWAYS_SHUFFLES", False):
            continue
        for name, tensor in lane.job.model.state_dict().items():
            if not torch.allclose(tensor, first[name], rtol=1e-3, atol=1e-4):
                raise RuntimeError(f"{lane.name}: {name} differs from the hand-written loop's")


# --- what they do besides ------------------------------------------------------------------------


def find_facts(sizes: tuple[int, ...]) -> list[Facts]:
    """Count the samples that each engine validates, and cut its training off."""
    facts = []
    for name, engine in engines().items():
        if name == "by hand again":
            continue
        print(f"{name}: validation and resume ...", file=sys.stderr)
        fact = Facts(name, _validated(engine))
        fact.resumed = {size: resume(engine, size) for size in sizes}
        facts.append(fact)
    return facts


def _validated(engine: ModuleType) -> int:
    with TemporaryDirectory() as folder:
        path = Path(folder)

        def count(rank: int) -> None:
            number = engine.count_validated(Job(rank, SIZE, path, iterations=1))
            if rank == 0:
                (path / "counted").write_text(str(number))

        fork(count, SIZE, 120)
        counted = path / "counted"
        return int(counted.read_text()) if counted.exists() else 0


OPTIONS: dict[str, object] = {
    "iterations": 20,
    "epochs": 2,
    "dropout": 0.3,
    "shuffles": True,
    "save_at": 10,
}
KILL_AFTER = 14


def resume(engine: ModuleType, size: int) -> str:
    """Kill a training in an epoch and resume it; return whether its weights are the same.

    A training that starts over comes to the same weights, too: it must not be taken for a resume.
    """
    with TemporaryDirectory() as folder:
        whole, cut = Path(folder) / "whole", Path(folder) / "cut"
        whole.mkdir()
        cut.mkdir()
        _train(engine, size, whole, {})
        _train(engine, size, cut, {"kill_after": KILL_AFTER})
        made = _train(engine, size, cut, {"resumes": True})
        ends = [path / "weights.pth" for path in (whole, cut)]
        if made is None or not all(path.exists() for path in ends):
            return "failed"
        if made == 40:
            return "started over"
        first, second = (torch.load(path, weights_only=True) for path in ends)
        is_same = all(torch.equal(first[name], second[name]) for name in first)
        return "yes" if is_same else "no"


def _train(engine: ModuleType, size: int, folder: Path, changes: dict[str, object]) -> int | None:
    """Train on ranks; return how many iterations were made, or None if a rank failed."""
    kill_after = cast("int | None", changes.pop("kill_after", None))

    def train(rank: int) -> None:
        torch.set_num_threads(1)
        job, count = Job(rank, size, folder, **{**OPTIONS, **changes}), [0]  # type: ignore[arg-type]

        def notify() -> None:
            count[0] += 1
            if kill_after is not None and count[0] > kill_after:
                wait_for(lambda: engine.has_saved(job))
                kill_this_rank()

        job.model.notify = notify
        engine.train(job)
        if rank == 0:
            torch.save(job.model.state_dict(), folder / "weights.pth")
            (folder / "made").write_text(str(count[0]))

    codes = fork(train, size, 120)
    return None if any(codes) else int((folder / "made").read_text())


def wait_for(is_done: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a checkpoint, which may be written in the background, is complete."""
    end = perf_counter() + seconds
    while not is_done():
        if perf_counter() > end:
            raise TimeoutError("there is no checkpoint")
        sleep(0.05)


# --- the tables ----------------------------------------------------------------------------------


def measure(*, quick: bool) -> dict[str, object]:
    """Measure everything, and print it."""
    races = {}
    for contest in CONTESTS:
        print(f"{contest.name}, {SIZE} ranks ...", file=sys.stderr)
        found = race(contest, 8 if quick else 40)
        show_race(contest, found)
        races[contest.name] = {
            name: [asdict(one) for one in times] for name, times in found.items()
        }
    facts = find_facts((2,) if quick else (2, 4))
    show_facts(facts)
    return {"races": races, "facts": [asdict(fact) for fact in facts]}


def show_race(contest: Contest, found: dict[str, list[Times]]) -> None:
    """Print the times of one model."""
    print(f"\n{contest.name}, {SIZE} ranks, one thread each; microseconds per iteration")
    print(
        f"  {'':14} {'wall min':>10} {'median':>10} {'cpu min':>10} {'median':>10}  cpu to by hand"
    )
    base = found["by hand"]
    for name, times in found.items():
        wall, cpu = ([max(both) for both in zip(*one, strict=False)] for one in _columns(times))
        if len(cpu) < 2:
            print(f"  {name:14} did not run")
            continue
        pairs = zip(
            cpu, [max(both) for both in zip(*_columns(base)[1], strict=False)], strict=False
        )
        more = median(own - other for own, other in pairs)
        print(
            f"  {name:14} {min(wall):10.0f} {median(wall):10.0f} {min(cpu):10.0f} "
            f"{median(cpu):10.0f}  {more:+10.0f}"
        )


def _columns(times: list[Times]) -> tuple[list[list[float]], list[list[float]]]:
    return [one.wall for one in times], [one.cpu for one in times]


def show_facts(facts: list[Facts]) -> None:
    """Print what the engines do besides."""
    print(f"\n{'':14} validated of {VALIDATED}   resumed in an epoch, bit for bit")
    for fact in facts:
        exact = ", ".join(f"{size} ranks {answer}" for size, answer in fact.resumed.items())
        print(f"{fact.name:14} {fact.validated:16}   {exact}")


def main() -> None:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description="Compare trainings on several ranks.")
    parser.add_argument("--quick", action="store_true", help="minutes, less exact")
    parser.add_argument("--json", type=Path, help="file of figures")
    parser.add_argument("--facts", action="store_true", help="only validations and resumes")
    options = parser.parse_args()
    if options.facts:
        show_facts(find_facts((2, 4)))
        return
    content = measure(quick=options.quick)
    if options.json:
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
