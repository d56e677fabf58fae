"""Record what configurations do: one process that has imported torch, and a fork for each training.

``python -m tests.golden.record DIRECTORY --take-kills-from OTHER 1 2 7_sampler``
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.golden import in_dialects, on_ranks  # noqa: F401 - they add theirs
from tests.golden.attempt import Attempt
from tests.golden.configurations import CONFIGURATIONS
from tests.golden.digests import messages
from tests.golden.files import read_directory
from tests.golden.setting import Configuration
from tests.ranks import each_rank, import_torch_parts

TIMEOUT = 300.0


def record_all(
    directory: Path, configurations: Iterable[Configuration], others: Path | None = None
) -> None:
    """Record configurations, each into a folder of its own; with others, resume their kills."""
    import_torch_parts()
    for configuration in configurations:
        since = time.monotonic()
        _record(configuration, directory, others)
        seconds = time.monotonic() - since
        print(f"{seconds:6.1f} s  {configuration}", flush=True)


def _record(configuration: Configuration, directory: Path, others: Path | None) -> None:
    home = directory / configuration.name
    home.mkdir(parents=True)
    for part in ("whole", "counted") if configuration.counts else ("whole",):
        attempt = Attempt(home / part, part, configuration.variant)
        _attempt(configuration, home, attempt, configuration.ranks)
    before: Path | None = None
    for kill in configuration.kills:
        name = f"killed at {kill}"
        killed = _folder(home, name)
        if others is None:
            attempt = Attempt(
                killed, name, configuration.variant, kill=kill, is_resumed=before is not None
            )
            _attempt(configuration, home, attempt, configuration.ranks, before)
            (home / f"{killed.name}.done").touch()
        else:
            killed = others / killed.relative_to(directory)
            _wait_for(killed.with_name(f"{killed.name}.done"))
        before = killed if configuration.is_chained else None
        for ranks in configuration.resumed_on or (configuration.ranks,):
            name = f"resumed after {kill}" + f" on {ranks}" * (ranks != configuration.ranks)
            attempt = Attempt(
                _folder(home, name), name, configuration.variant, is_resumed=True, after=kill
            )
            _attempt(configuration, home, attempt, ranks, killed)


def _folder(home: Path, part: str) -> Path:
    return home / part.replace(" ", "_")


def _wait_for(path: Path) -> None:
    end = time.monotonic() + TIMEOUT
    while not path.exists():
        if time.monotonic() > end:
            raise SystemExit(f"{path} does not appear: the other side is not as far.")
        time.sleep(0.01)


def _attempt(
    configuration: Configuration,
    home: Path,
    attempt: Attempt,
    ranks: int,
    start: Path | None = None,
) -> None:
    """Train in processes of their own, and write down what they did."""
    attempt.directory.mkdir()
    if start is not None and (start / "run").exists():
        shutil.copytree(start / "run", attempt.run_dir)

    def train() -> None:
        _train(configuration, attempt)

    if ranks == 1:
        codes = [_fork(train)]
    else:
        with (home.parents[1] / "ranks.lock").open("w") as lock:  # One side after the other.
            fcntl.flock(lock, fcntl.LOCK_EX)
            codes = [end.code or 0 for end in each_rank(train, ranks, timeout=TIMEOUT)]
    is_killed = attempt.kill is not None
    expected = -signal.SIGKILL if is_killed and configuration.dies(attempt.kill) else 0
    found: dict[str, Any] = {}
    for rank in range(ranks):
        path = attempt.directory / f"record_{rank}.json"
        one = json.loads(path.read_text()) if path.exists() else {}
        for stream in ("out", "err"):
            text = (attempt.directory / f"{stream}_{rank}").read_text()
            one[f"messages ({stream})"] = messages(text)
        found[f"rank {rank}"] = one
    if codes != [expected] * ranks:
        lines = (attempt.directory / "err_0").read_text().splitlines()
        print(*lines[-4:], sep="\n", file=sys.stderr)
        found["problem"] = f"it ended with {codes} instead of {expected}"
        print(f"{configuration}: {attempt.part}: {found['problem']}", flush=True)
    if not is_killed and not attempt.is_counted:
        found["files"] = read_directory(attempt.directory)
    (home / f"{attempt.part}.json").write_text(json.dumps(found))
    if not is_killed:  # From there the other side resumes.
        shutil.rmtree(attempt.directory)


def _fork(work: Callable[[], None]) -> int:
    """Call a function in a process of its own; return its exit code, or minus a signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGALRM


def _train(configuration: Configuration, attempt: Attempt) -> None:
    rank = os.environ.get("RANK", "0")
    for number, stream in ((1, "out"), (2, "err")):
        file = os.open(
            attempt.directory / f"{stream}_{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND
        )
        os.dup2(file, number)
    os.chdir(attempt.directory)
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    try:
        configuration.train(attempt)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.setprofile(None)
        sys.stdout.flush()
        sys.stderr.flush()
        record = json.dumps(attempt.record)
        (attempt.directory / f"record_{rank}.json").write_text(record)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--take-kills-from", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    import hookloop

    found = Path(hookloop.__file__).resolve()
    if arguments.source is not None and not found.is_relative_to(arguments.source.resolve()):
        raise SystemExit(f"hookloop comes from {found} and not from {arguments.source}.")
    chosen = [one for one in CONFIGURATIONS if one.name in arguments.names]
    record_all(arguments.directory, chosen, arguments.take_kills_from)


if __name__ == "__main__":
    main()
