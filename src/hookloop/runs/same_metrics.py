"""Compare the numbers of two runs at equal iterations, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import STAMPS
from hookloop.runs.policy import is_of_machine
from hookloop.runs.reader import machine_metrics

Place = tuple[int, str, str]


@dataclass(frozen=True)
class Difference:
    """A number that differs between two runs."""

    name: str
    iter: int
    first: float
    second: float

    def __str__(self) -> str:
        return f"{self.name} at iteration {self.iter}: {self.first!r} and {self.second!r}"


@dataclass(frozen=True)
class Comparison:
    """What two runs have in common.

    Attributes:
        numbers: How many numbers were compared.
        last_iter: The last iteration at which both have one.
        differences: Those that differ, the earliest first.
    """

    numbers: int
    last_iter: int
    differences: tuple[Difference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether every number is the same; with none to compare, it is not known to be."""
        return bool(self.numbers) and not self.differences


def compare_metrics(first: Path, second: Path) -> Comparison:
    """Compare the metrics of two run directories.

    Raises:
        OSError: If a file of metrics cannot be read.
        ValueError: If it is not one.
    """
    machine = {*machine_metrics(RunDir(first)), *machine_metrics(RunDir(second))}
    one, other = _numbers(first, machine), _numbers(second, machine)
    common = sorted(one.keys() & other.keys())
    found = tuple(
        Difference(name, place, one[place, span, name], other[place, span, name])
        for place, span, name in common
        if not _is_same(one[place, span, name], other[place, span, name])
    )
    return Comparison(len(common), common[-1][0] if common else 0, found)


def _numbers(run: Path, machine: Collection[str]) -> dict[Place, float]:
    """Return the numbers of a run by iteration, span and name, without those of the machine."""
    return {
        (iteration, span, name): value
        for iteration, span, record in _records(run)
        for name, value in record.items()
        if isinstance(value, float | int)
        and not isinstance(value, bool)
        and name not in STAMPS
        and not is_of_machine(name, machine)
    }


def _records(run: Path) -> Iterator[tuple[int, str, dict[str, object]]]:
    for record in RunDir(run).read_metrics():
        iteration = record.get("iter")
        if isinstance(iteration, int):
            yield iteration, f"{record.get('phase')}/{record.get('span')}", record


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
