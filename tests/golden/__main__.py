"""Record a commit and this tree, and compare: ``python -m tests.golden aacb2b9 --only 3,7``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.golden import in_dialects, on_ranks  # noqa: F401 - they add theirs
from tests.golden.compare import Result, compare
from tests.golden.configurations import CONFIGURATIONS

ROOT = Path(__file__).parents[2]


def main() -> int:
    arguments = _arguments()
    names = _chosen(arguments.only, is_fast=arguments.fast)
    since = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hookloop-golden-") as place:
        tree = Path(place) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), arguments.base)
        try:
            base, new = Path(place) / "base", Path(place) / "new"
            is_recorded = record_both(tree / "src", base, ROOT / "src", new, names)
            result = compare(base, new)
        finally:
            _git("worktree", "remove", "--force", str(tree))
    _report(result, arguments.base)
    seconds = time.monotonic() - since
    print(f"{len(names)} configurations, {result.compared} trainings in {seconds:.0f} s")  # noqa: T201
    return int(bool(result.differences) or not is_recorded)


def record_both(
    old_source: Path, base: Path, new_source: Path, new: Path, names: list[str]
) -> bool:
    """Record two versions at the same time; the second resumes what the first left behind."""
    processes = [
        _record(old_source, base, names, shown=False),
        _record(new_source, new, names, "--take-kills-from", str(base), shown=True),
    ]
    try:
        while any(one.poll() is None for one in processes):
            if any(one.poll() for one in processes):  # The other one would wait for it.
                return False
            time.sleep(0.05)
    finally:
        for one in processes:
            one.terminate()
            one.wait()
    return not any(one.returncode for one in processes)


def _record(
    source: Path, directory: Path, names: list[str], *options: str, shown: bool
) -> subprocess.Popen[bytes]:
    directory.mkdir()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-P", "-m", "tests.golden.record", str(directory)]
    return subprocess.Popen(
        [*command, "--source", str(source), *options, *names],
        env=environment,
        cwd=directory,
        stdout=None if shown else subprocess.DEVNULL,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make golden")
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--fast", action="store_true", help="the short selection")
    parser.add_argument("--only", help="numbers, with commas between")
    return parser.parse_args()


def _chosen(only: str | None, *, is_fast: bool) -> list[str]:
    if only:
        wanted = set(only.split(","))
        known = {name for one in CONFIGURATIONS for name in (one.name, str(one.number))}
        if unknown := sorted(wanted - known):
            raise SystemExit(f"There is no configuration {', '.join(unknown)}.")
        return [one.name for one in CONFIGURATIONS if {one.name, str(one.number)} & wanted]
    return [one.name for one in CONFIGURATIONS if one.is_fast or not is_fast]


def _git(*command: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *command], check=True)


def _report(result: Result, base: str) -> None:
    reasons: dict[str, int] = {}
    for _, rule in result.expected:
        reasons[rule.reason] = reasons.get(rule.reason, 0) + 1
    for reason, count in reasons.items():
        print(f"expected, {count} places: {reason}")  # noqa: T201
    for line in result.fewer:
        print(f"fewer calls: {line}")  # noqa: T201
    for difference in result.differences:
        print(f"DIFFERENT: {difference}")  # noqa: T201
    if not result.differences:
        print(f"equal to {base}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
