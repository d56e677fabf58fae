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
from tests.golden.expected import EXPECTED
from tests.golden.setting import Configuration

ROOT = Path(__file__).parents[2]


def main() -> int:
    arguments = _arguments()
    chosen = _chosen(arguments.only, is_fast=arguments.fast)
    groups = _by_python(chosen, arguments.downstream)
    since = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hookloop-golden-") as place:
        tree = Path(place) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), arguments.base)
        try:
            base, new = Path(place) / "base", Path(place) / "new"
            is_recorded = all(
                record_both(python, tree / "src", base, ROOT / "src", new, names)
                for python, names in groups.items()
            )
            result = compare(base, new)
        finally:
            _git("worktree", "remove", "--force", str(tree))
    if is_recorded:
        _report(result, arguments.base)
    seconds, count = time.monotonic() - since, sum(map(len, groups.values()))
    print(f"{count} configurations, {result.compared} trainings in {seconds:.0f} s")
    return int(bool(result.differences) or not is_recorded)


def _by_python(chosen: list[Configuration], downstream: Path) -> dict[str, list[str]]:
    """Return which Python records which configurations; leave out what nothing can record."""
    other = downstream / "bin" / "python"
    groups: dict[str, list[str]] = {}
    for one in chosen:
        if not one.needs:
            groups.setdefault(sys.executable, []).append(one.name)
        elif other.exists():
            groups.setdefault(str(other.absolute()), []).append(one.name)
        else:
            print(f"left out: {one}, because `make downstream` has not made {downstream}")
    return groups


def record_both(
    python: str, old_source: Path, base: Path, new_source: Path, new: Path, names: list[str]
) -> bool:
    """Record two versions at the same time; the second resumes what the first left behind."""
    processes = [
        _record(python, old_source, base, names, shown=False),
        _record(python, new_source, new, names, "--take-kills-from", str(base), shown=True),
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
    python: str, source: Path, directory: Path, names: list[str], *options: str, shown: bool
) -> subprocess.Popen[bytes]:
    directory.mkdir(exist_ok=True)
    packages = source.parent.glob("packages/*/src")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, [source, *packages, ROOT])),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [python, "-P", "-m", "tests.golden.record", str(directory)]
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
    parser.add_argument("--downstream", type=Path, default=ROOT / ".venv-downstream")
    return parser.parse_args()


def _chosen(only: str | None, *, is_fast: bool) -> list[Configuration]:
    if only:
        wanted = set(only.split(","))
        known = {name for one in CONFIGURATIONS for name in (one.name, str(one.number))}
        if unknown := sorted(wanted - known):
            raise SystemExit(f"There is no configuration {', '.join(unknown)}.")
        return [one for one in CONFIGURATIONS if {one.name, str(one.number)} & wanted]
    return [one for one in CONFIGURATIONS if one.is_fast or not is_fast]


def _git(*command: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *command], check=True)


def _report(result: Result, base: str) -> None:
    reasons = {rule.reason: 0 for rule in EXPECTED}
    for _, rule in result.expected:
        reasons[rule.reason] += 1
    for reason, count in reasons.items():
        if count:
            print(f"expected, {count} places: {reason}")
    for line in result.fewer:
        print(f"fewer calls: {line}")
    for difference in result.differences:
        print(f"DIFFERENT: {difference}")
    if not result.differences:
        print(f"equal to {base}")


if __name__ == "__main__":
    sys.exit(main())
