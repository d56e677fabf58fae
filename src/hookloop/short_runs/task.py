"""Train a config several times, each in a process of its own: the base of the verify commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hookloop.errors import HookloopError


class Trials:
    """Trains a config in separate processes.

    Args:
        folder: The directory for the runs.
        config: The config file.
        overrides: Changes to it.
        iters: The number of iterations to train.
        aliases: The systems whose packages are replaced.
    """

    def __init__(
        self,
        folder: Path,
        config: Path,
        overrides: Sequence[str],
        iters: int,
        aliases: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.settings = {
            "config": str(config),
            "overrides": list(overrides),
            "aliases": aliases,
            "iters": iters,
            "every": max(1, min(5, iters // 4)),  # Several saves, even in a short training.
        }

    def start(
        self, module: str, name: str, task: Mapping[str, object]
    ) -> subprocess.CompletedProcess[str]:
        """Run a module that trains in the directory ``name``, and wait for it."""
        whole = {**self.settings, "run_dir": str(self.folder / name), **task}
        return subprocess.run(
            [sys.executable, "-m", module, json.dumps(whole)],
            check=False,  # A kill is an expected end.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # In one stream, so that the last lines are the last ones.
            text=True,
        )


def failure_of(process: subprocess.CompletedProcess[str]) -> HookloopError:
    """Return the error for a training that failed, with the end of its output."""
    tail = "\n".join(process.stdout.splitlines()[-20:])
    return HookloopError(f"The training ended with exit code {process.returncode}:\n{tail}")
