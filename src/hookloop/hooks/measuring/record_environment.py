"""`RecordEnvironment`: where and with what a run was made."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.engine.hook import Hook
from hookloop.runs import environment
from hookloop.runs.git import Repository

if TYPE_CHECKING:
    import torch

    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

PATIENCE = 0.01
"""Seconds for which the start of a training waits for git; a large repository takes longer."""

LAST_PATIENCE = 1.0
"""Seconds for which the end of a training waits for it."""


class RecordEnvironment(Hook):
    """Write ``environment.json``: what the run was started with, one entry per start.

    An entry has the command line, host, Python, packages, torch and its CUDA, GPUs and driver, CPU
    and threads, the git commit and whether files have changed since, and variables such as
    ``OMP_NUM_THREADS``. Secrets are left out. A resumed run reports what has changed since its last
    start, in one line.

    Args:
        git: Whether to ask git for the commit of the working directory.

    Example:
        >>> RecordEnvironment(git=False).git
        False
    """

    ranks = "first"
    on_error = "disable"  # A training does not fail because it cannot be described.
    draws_random_numbers = False

    def __init__(self, git: bool = True) -> None:
        self.git = git
        self._repository: Repository | None = None
        self._starts: list[dict[str, object]] = []

    def before_train(self, run: Run) -> None:
        # First, because the rest is done while git works.
        self._repository = Repository(Path.cwd()) if self.git else None
        earlier = environment.read_starts(run.dir)
        entry = {"iter": run.progress.iter, **environment.describe_process(run.dir)}
        entry |= {"ranks": run.world.size, **describe_torch(run.device)}
        self._starts = [*earlier, entry]
        if self._repository is None or self._repository.is_known(PATIENCE):
            self._complete(run)
        else:  # The rest is safe already; the commit comes as soon as it is known.
            environment.write_starts(run.dir, self._starts)

    def after_train_epoch(self, run: Run) -> None:
        if self._repository is not None and self._repository.is_known():
            self._complete(run)

    def after_run(self, run: Run) -> None:
        if self._repository is not None:
            self._repository.is_known(LAST_PATIENCE)
            self._complete(run)

    def _complete(self, run: Run) -> None:
        """Write the entry with its commit, and report what has changed since the last one."""
        *earlier, entry = self._starts
        repository, self._repository = self._repository, None
        if repository is not None and (state := repository.state()):
            entry["git"] = state
        environment.write_starts(run.dir, self._starts)
        # A run that begins again in its directory has nothing to be compared with.
        changed = environment.compare(earlier[-1], entry) if earlier and entry["iter"] else []
        if changed:
            _log.warning(
                "The environment has changed since the last start of this run: %s",
                environment.summarize(changed),
            )


def describe_torch(device: torch.device) -> dict[str, object]:
    """Return what torch tells of itself and of the devices; it starts no GPU that is not used."""
    import torch

    cuda = torch.version.cuda
    build: dict[str, object] = {"version": str(torch.__version__), "cuda": cuda}
    if (hip := getattr(torch.version, "hip", None)) is not None:
        build["hip"] = hip
    if cuda is not None:
        build["cudnn"] = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    found: dict[str, object] = {"torch": build, "device": str(device)}
    gpus: list[str] = []
    if device.type == "cuda":
        for number in range(torch.cuda.device_count()):
            gpu = torch.cuda.get_device_properties(number)
            gpus.append(f"{gpu.name} ({gpu.total_memory // 2**20} MiB)")
    return {
        **found,
        "gpus": gpus,
        "driver": environment.driver_version(),
        # ATEN_CPU_CAPABILITY changes it, and it changes the bits.
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": {"torch": torch.get_num_threads(), "interop": torch.get_num_interop_threads()},
    }
