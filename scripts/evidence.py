"""Measure again what the README claims: ``make evidence CLAIM=exactness``.

Each claim is one command. What it printed is kept in docs/evidence with the date, the commit, the
machine and the versions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "docs" / "evidence"
PYTHON = sys.executable
BENCH = ".venv-bench/bin/python"
PEERS = ".venv-downstream/bin/python"

Figures = dict[str, object]


@dataclass(frozen=True)
class Claim:
    """Something that the README says.

    Attributes:
        says: The sentence.
        command: What shows it, from the root of the repository; ``python`` stands for this one.
        figures: Finds the figures in what the command printed; raises if they do not show it.
    """

    says: str
    command: tuple[str, ...]
    figures: Callable[[str], Figures]


class NotShownError(Exception):
    """The command did not show what is claimed."""


def _exact(printed: str) -> Figures:
    found = cast("dict[str, object]", json.loads(printed))
    kept = {key: found[key] for key in ("result", "iters", "kills", "differences")}
    if found["exit_code"] != 0:
        raise NotShownError(f"not exact: {kept}")
    return kept


def _result(printed: str) -> Figures:
    found = cast("dict[str, object]", json.loads(printed))
    if found.get("exit_code") != 0:
        raise NotShownError(printed[-1000:])
    return {key: value for key, value in found.items() if key != "exit_code"}


def _trials(printed: str) -> Figures:
    lines = [line.rpartition(" [")[0] or line for line in printed.splitlines() if ": " in line]
    return {"trials": dict(line.split(": ", 1) for line in lines)}


def _tests(printed: str) -> Figures:
    found = {
        what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|error)", printed)
    }
    if set(found) != {"passed"}:
        raise NotShownError(f"tests: {found}")
    return {"tests that passed": found["passed"]}


def _cost(printed: str) -> Figures:
    content = json.loads((ROOT / "build" / "cost.json").read_text(encoding="utf-8"))
    rows: Figures = {}
    for case, results in content["races"].items():
        by_hand, again = (_median(one) for one in results[:2])
        base = (by_hand + again) / 2
        rows[case] = {
            one["name"]: round(_median(one) - base, 1) for one in results[2:] if len(one["cpu"]) > 1
        }
    return {"microseconds per iteration more than the loop by hand": rows}


def _median(result: Mapping[str, list[float]]) -> float:
    values = sorted(result["cpu"])
    return values[len(values) // 2] * 1e6


DIGITS = "examples/digits/config.yaml"
HOOKLOOP = ("python", "-m", "hookloop")
CLAIMS = {
    "exactness": Claim(
        "A run that is killed at any iteration continues to the same bits.",
        (*HOOKLOOP, "verify-resume", DIGITS, "--kills", "5", "--json"),
        _exact,
    ),
    "ranks": Claim(
        "With logical ranks the bits are the same on any number of processes, and so are those of "
        "a run that is killed on three and continues on two.",
        (
            *HOOKLOOP, "verify-resume", DIGITS, "parallel.logical=4", "max_epochs=6",
            "--ranks", "3", "--resume-ranks", "2", "--kills", "2", "--json",
        ),
        _exact,
    ),
    "faults": Claim(
        "Nothing is lost by a kill, a full disk, a damaged file or a store that hangs.",
        ("python", "scripts/faults.py", "--kills", "20"),
        _trials,
    ),
    "time-travel": Claim(
        "Any iteration can be repeated to the last bit, with nothing switched on beforehand.",
        (*HOOKLOOP, "verify-replay", DIGITS, "--json"),
        _result,
    ),
    "migration": Claim(
        "Whole projects of MMEngine train on this engine with the results of the real one.",
        (PEERS, "-m", "pytest", "-q", "-W", "ignore", "-m", "not long", "tests/downstream/graft"),
        _tests,
    ),
    "cost": Claim(
        "It costs less per iteration than any engine that it was compared with.",
        (BENCH, "-m", "bench.run", "--quick", "--json", "build/cost.json"),
        _cost,
    ),
}  # fmt: skip


def measure(name: str) -> Path:
    """Run the command of a claim, and write what it showed."""
    claim = CLAIMS[name]
    (ROOT / "build").mkdir(exist_ok=True)
    print(f"{name}: {' '.join(claim.command)}", file=sys.stderr)
    line = [PYTHON if word == "python" else word for word in claim.command]
    began = time.monotonic()
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode:
        raise NotShownError(f"{name}: the command ended with {done.returncode}: {done.stdout}")
    PLACE.mkdir(parents=True, exist_ok=True)
    place = PLACE / f"{name}.json"
    found = {
        "claim": claim.says,
        "command": " ".join(claim.command),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _git("rev-parse", "HEAD")
        + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "processors": os.cpu_count(),
            "load before": round(os.getloadavg()[0], 1),
        },
        "versions": {
            "hookloop": version("hookloop"),
            "python": platform.python_version(),
            "torch": version("torch"),
        },
        "seconds": round(seconds, 1),
        "figures": claim.figures(done.stdout),
    }
    place.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return place


def _git(*arguments: str) -> str:
    line = ["git", *arguments]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("claims", nargs="*", default=list(CLAIMS), metavar="claim")
    for name in parser.parse_args().claims:
        if name not in CLAIMS:
            raise SystemExit(f"There is no claim '{name}': {', '.join(CLAIMS)}.")
        try:
            print(f"wrote {measure(name).relative_to(ROOT)}")
        except NotShownError as error:
            raise SystemExit(f"NOT SHOWN: {error}") from error


if __name__ == "__main__":
    main()
