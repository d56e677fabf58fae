"""Trainings that take turns within one process, so that all of them have the same noise.

Each training runs in its own thread and waits for its turn; then it makes some iterations to warm
up and fifty that are timed. Turns are hundredths of a second apart, so a busy moment of the machine
affects all trainings. The result is the median of the differences to the hand-written loop of the
same round.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import torch

from bench.tiny import Case, Perceptron, Work, make_data

TIMED = 50
"""Iterations that are timed in a turn; exactly one of them writes a line of the log."""
WARM_UP = 5
FIRST = 35
"""Iterations before the first turn."""

Train = Callable[[Work], None]


@dataclass
class Result:
    """The times of the turns of one training, in microseconds per iteration.

    Attributes:
        name: The engine.
        cpu: Processor time of all threads.
        wall: Wall time.
        same_weights: Whether the final weights are those of the first training, bit for bit.
        error: Why it did not finish.
    """

    name: str
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    same_weights: bool = True
    error: str = ""


class StoreQueue(threading.Thread):
    """One training that runs only when it is its turn."""

    def __init__(self, name: str, train: Train, case: Case, rounds: int, folder: Path) -> None:
        super().__init__(name=name, daemon=True)
        iterations = FIRST + rounds * (WARM_UP + TIMED)
        self.result = Result(name)
        self._train = train
        self._count = 0
        self._next = FIRST
        self._go, self._rests = threading.Semaphore(0), threading.Semaphore(0)
        self._since = (0.0, 0.0)
        self.work = Work(case, Perceptron(self), iterations, make_data(iterations), folder)

    def take_turn(self) -> None:
        """Let it run until it has been timed once, or has ended."""
        self._go.release()
        self._rests.acquire()

    def run(self) -> None:
        """Train, and keep the error if there is one."""
        self._go.acquire()
        try:
            self._train(self.work)
        except Exception as error:  # noqa: BLE001 - shown in the table
            self.result.error = f"{type(error).__name__}: {error}"
        self._next = sys.maxsize
        self._rests.release()

    def __deepcopy__(self, memo: object) -> Callable[[], None]:
        """Return a function that does nothing, for copies of the model such as an average."""
        return lambda: None

    def __call__(self) -> None:
        """Count a forward pass; a timed turn is the time between two of them."""
        self._count += 1
        if self._count == self._next:
            self._next += WARM_UP + TIMED
            now = process_time(), perf_counter()
            if self._count > FIRST:
                self.result.cpu.append((now[0] - self._since[0]) / TIMED * 1e6)
                self.result.wall.append((now[1] - self._since[1]) / TIMED * 1e6)
            self._rests.release()
            self._go.acquire()
        if self._count == self._next - TIMED:
            self._since = process_time(), perf_counter()


def race(case: Case, engines: dict[str, Train], rounds: int) -> list[Result]:
    """Let engines train in turns; the others are compared with the first."""
    with TemporaryDirectory() as folder:
        lanes = [
            StoreQueue(name, train, case, rounds, Path(folder) / str(number))
            for number, (name, train) in enumerate(engines.items())
        ]
        for lane in lanes:
            lane.work.folder.mkdir()
            lane.start()
            lane.take_turn()
        shuffled = random.Random(0)
        for _ in range(rounds):
            # The training before leaves its data in the caches, so the order changes.
            for lane in shuffled.sample(lanes, len(lanes)):
                if not lane.result.error:
                    lane.take_turn()
        for lane in lanes:
            if not lane.result.error:
                lane.take_turn()
            lane.join()
    first = lanes[0].work.model.state_dict()
    for lane in lanes:
        own = lane.work.kept or lane.work.model.state_dict()
        lane.result.same_weights = all(
            torch.equal(own[name], tensor) for name, tensor in first.items()
        )
    return [lane.result for lane in lanes]


def mean_of(first: Result, second: Result) -> Result:
    """Return the mean of two measurements of the same engine, which has less noise."""
    cpu, wall = (
        [(one + other) / 2 for one, other in zip(*both, strict=True)]
        for both in ((first.cpu, second.cpu), (first.wall, second.wall))
    )
    return Result(first.name, cpu, wall)


def difference(result: Result, base: Result, clock: str = "cpu") -> tuple[float, float, float]:
    """Return quartile, median and quartile of how much longer a result takes than the base."""
    times, base_times = (result.wall, base.wall) if clock == "wall" else (result.cpu, base.cpu)
    pairs = zip(times, base_times, strict=True)
    low, middle, high = quantiles([longer - shorter for longer, shorter in pairs], n=4)
    return low, middle, high


def typical(result: Result, clock: str = "cpu") -> float:
    """Return the median time of an iteration."""
    return median(result.wall if clock == "wall" else result.cpu)
