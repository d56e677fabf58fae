"""Measure what hookloop costs, compared with the hand-written loop and the peers: ``make bench``.

The same work (tiny.py) is done by a hand-written loop, by hookloop and by the peers that are
installed, in turns within one process (race.py); at the end the weights of all must agree bit for
bit. The hand-written loop takes part twice: the difference of the two is the noise. Hookloop is
closer to it than that, so the two are compared once more, alone and for six times as many rounds.
Then come common kinds of data (kinds.py), an empty mount point, what grows (growth.py), how long
the start takes (start.py) and trainings on two ranks (ranks.py, logical.py).
Tables are printed, all figures go to a JSON file, and a picture shows the first ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import timeit
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import thread_time

# New threads take this setting; torch.set_num_threads() affects only the thread that calls it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from bench import by_hand, growth, kinds, logical, ours, ranks, report, start
from bench.race import Result, Train, race
from bench.tiny import Case, Work
from hookloop import Hook
from hookloop.engine.plan import Plan, fire
from hookloop.engine.points import PointTable

PEERS = {
    "ignite": "pytorch-ignite",
    "emloop": "emloop",
    "mmengine": "mmengine",
    "accelerate": "accelerate",
    "lightning": "lightning",
    "transformers": "transformers",
}
CASES = (
    Case("no hooks"),
    Case("everyday set", everyday=True),
    Case("everyday set and EMA", everyday=True, ema=True),
    Case("100 idle hooks", idle=100),
    Case("100 empty hooks", empty=100),
)
FAST = Case("fast path", fast=True)


BY_HAND: dict[str, Train] = {"by hand": by_hand.train, "by hand again": by_hand.train}


def engines() -> dict[str, Train]:
    """Return the engines that take part: hookloop and the installed peers."""
    found = BY_HAND | {"hookloop": ours.train}
    for name in PEERS:
        if find_spec(name) is not None:
            found[name] = import_module(f"bench.peers.{name}").train
    return found


def race_all(rounds: int) -> dict[str, list[Result]]:
    """Run every case with all engines."""
    results: dict[str, list[Result]] = {}
    for case in CASES:
        print(f"{case.name} ...", file=sys.stderr)
        results[case.name] = race(case, engines(), rounds)
    return results


def race_alone(rounds: int) -> dict[str, list[Result]]:
    """Run every case with hookloop alone, and compare its fast path with a plain DataLoader."""
    results: dict[str, list[Result]] = {}
    for case in CASES:
        print(f"{case.name}, hookloop alone ...", file=sys.stderr)
        results[f"{case.name}, hookloop alone"] = race(
            case, BY_HAND | {"hookloop": ours.train}, rounds
        )
    fast = BY_HAND | {"hookloop, plain": _without_fast_path, "hookloop": ours.train}
    results[FAST.name] = race(FAST, fast, rounds)
    return results


def _without_fast_path(work: Work) -> None:
    ours.train(Work(Case("plain"), work.model, work.iterations, work.data, work.folder))


def empty_point(repeats: int = 21, number: int = 100_000) -> float:
    """Return the nanoseconds of a point at which no hook acts, in a plan that has a hook."""

    class Elsewhere(Hook):
        def after_epoch(self, run: object) -> None: ...

    names = {"fire": fire, "plan": Plan([Elsewhere()], PointTable()), "run": None}
    look = "if calls := plan.after_train_iter: fire(calls, run)"
    times = timeit.Timer(look, timer=thread_time, globals=names).repeat(repeats, number)
    return median(times) / number * 1e9


def other_figures(quick: bool) -> dict[str, object]:
    """Measure everything except the races."""
    tensors = (1, 10, 100, 1000) if quick else (1, 10, 100, 1000, 10_000)
    steps = growth.measure_hooks(20 if quick else 300)
    steps += growth.measure_parameters(tensors)
    steps += growth.measure_length(10_000 if quick else 1_000_000)
    first = start.measure_first_iteration(1 if quick else 5)
    return {
        "empty point, ns": empty_point(),
        "growth": [asdict(step) for step in steps],
        "import hookloop": asdict(start.measure_import(5 if quick else 15)),
        "first iteration": {name: asdict(spent) for name, spent in first.items()},
    }


def machine() -> dict[str, object]:
    """Describe the machine and the versions."""
    installed = (package for name, package in PEERS.items() if find_spec(name))
    names = ["torch", "hookloop", *installed]
    return {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "versions": {name: version(name) for name in names},
    }


def run_script(script: str) -> None:
    """Run a separate benchmark."""
    print(f"\n{script}", flush=True)
    subprocess.run([sys.executable, str(Path(__file__).parent / script)], check=True)


def main() -> None:
    """Measure, print the tables, and write the JSON file and the picture."""
    parser = argparse.ArgumentParser(description="Measure what the engine costs.")
    parser.add_argument("--quick", action="store_true", help="two minutes, less exact")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="file of figures")
    parser.add_argument("--picture", type=Path, help="file of the picture; needs matplotlib")
    options = parser.parse_args()
    torch.set_num_threads(1)
    before = machine()
    everyone = race_all(10 if options.quick else 100)
    results = everyone | race_alone(60 if options.quick else 600)
    by_kind = kinds.race_kinds(10 if options.quick else 100)
    content = {
        "machine": before,
        "races": {case: [asdict(result) for result in found] for case, found in results.items()},
        "kinds of data": {
            kind: [asdict(result) for result in found] for kind, found in by_kind.items()
        },
        **other_figures(options.quick),
    }
    report.print_all(results, content)
    print(f"\n{kinds.HEAD}")
    kinds.show(by_kind)
    content["ranks"] = ranks.measure(quick=options.quick)
    content["logical"] = logical.measure(turns=2 if options.quick else 8)
    options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        report.draw(everyone, options.picture)
    run_script("average_weights.py")
    wrong = [
        f"{case}: {result.name}"
        for case, found in (results | by_kind).items()
        for result in found
        if not result.same_weights and not result.error
    ]
    if wrong:
        raise SystemExit(f"The weights differ from the hand-written loop's: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
