"""Measure how long the start takes: importing hookloop, and reaching the first iteration."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parents[1]
CONFIG = "examples/digits/config.yaml"


@dataclass(frozen=True)
class Spent:
    """Seconds of a process: wall time and processor time."""

    wall: float
    cpu: float


Arguments = Callable[[int], list[str]]
"""Returns the command-line arguments of Python for a round."""


def run(arguments: list[str]) -> Spent:
    """Run Python once, with one thread for computations."""
    before, began = _children(), perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    # Without bytecode files, compiling torch's sources would be measured.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Spent(perf_counter() - began, _children() - before)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_in_turns(ways: dict[str, Arguments], rounds: int) -> dict[str, Spent]:
    """Run commands in turns and return the median of each; the first round fills the caches."""
    spent: dict[str, list[Spent]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, arguments in ways.items():
            spent[name].append(run(arguments(number)))
    return {
        name: Spent(median(run.wall for run in runs[1:]), median(run.cpu for run in runs[1:]))
        for name, runs in spent.items()
    }


def measure_import(rounds: int) -> Spent:
    """Measure what ``import hookloop`` adds to an empty program; torch is not part of it."""
    check = "import hookloop, sys; assert 'torch' not in sys.modules"
    ways: dict[str, Arguments] = {
        "empty": lambda _: ["-c", "pass"],
        "import": lambda _: ["-c", check],
    }
    spent = run_in_turns(ways, rounds)
    ours, empty = spent["import"], spent["empty"]
    return Spent(ours.wall - empty.wall, ours.cpu - empty.cpu)


def measure_first_iteration(rounds: int) -> dict[str, Spent]:
    """Measure ``hookloop train`` and a plain script on the digits, up to the first iteration."""
    with tempfile.TemporaryDirectory() as folder:
        begin = "from hookloop.cli.main import main; main()"
        end = "hooks.end=bench.first_iteration.EndProcess"

        def ours(number: int) -> list[str]:
            return ["-c", begin, "train", CONFIG, "--run-dir", f"{folder}/{number}", end]

        ways: dict[str, Arguments] = {
            "script": lambda _: ["bench/digits_by_hand.py"],
            "hookloop": ours,
        }
        return run_in_turns(ways, rounds)
