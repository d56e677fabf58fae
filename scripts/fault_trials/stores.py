"""Trials with the stores of a run: full disks, and a store that hangs."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from fault_trials.bench import Bench, final_checkpoint
from fault_trials.process import TrialFailed
from hookloop import Hook
from hookloop.checkpoint.state.compare import compare
from hookloop.engine.run import Run
from hookloop.hooks import SaveCheckpoint, WriteTo
from hookloop.writers.base import Writer
from hookloop.writers.records import Record


@dataclass
class Disk:
    """A directory whose disk can be filled."""

    path: Path
    kind: str

    def fill(self) -> None:
        """Leave no space."""
        if self.kind == "tmpfs":
            with (self.path / "ballast").open("ab") as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        else:
            # Nothing may be mounted here. A limit on the size of files makes writing fail as well;
            # without the handler, the signal would kill the process.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

    def clear(self) -> None:
        """Free the space again."""
        (self.path / "ballast").unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextmanager
def small_disk(path: Path, size: int = 2 << 20) -> Iterator[Disk]:
    """Mount a small disk in memory, if that is allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield Disk(path, "tmpfs" if mounted else "RLIMIT_FSIZE")
    finally:
        if mounted:
            subprocess.run(["umount", str(path)], check=True)


class Fill(Hook):
    """Keeps a disk full for some iterations."""

    def __init__(self, disk: Disk, during: range) -> None:
        self.disk = disk
        self.during = during
        self._is_full = False

    def before_train_iter(self, run: Run) -> None:
        """Fill or clear it."""
        full = run.progress.iter in self.during
        if full:  # In each iteration: old checkpoints that are deleted meanwhile leave space.
            self.disk.fill()
        elif self._is_full:
            self.disk.clear()
        self._is_full = full


def _save_one(disk: Disk) -> SaveCheckpoint:
    """Keep one checkpoint: a second one could be deleted to make room, and nothing would fail."""
    return SaveCheckpoint(1, keep=1, best="val/loss", directory=disk.path)


def fill_disk_for_a_while(bench: Bench) -> str:
    """The disk is full for some iterations: training continues, and saves when there is space."""
    run_dir = bench.root / "full_for_a_while"
    with small_disk(bench.root / "disk_1") as disk:
        hooks = [Fill(disk, range(12, 25))]
        process = bench.run(run_dir, save=_save_one(disk), hooks=hooks)
        log = process.log.read_text()
        for words in ("could not be saved", "the problem is over"):
            if log.count(words) != 1:
                raise TrialFailed(f"full_for_a_while: '{words}' comes {log.count(words)} times")
        bench.check_end(run_dir, store=disk.path / run_dir.name)
        return f"reported once, saved again when there was space ({disk.kind}); bit-equal"


def fill_disk_for_good(bench: Bench) -> str:
    """The disk stays full: the last good checkpoint is kept, and the exit code is not 0."""
    run_dir = bench.root / "full_for_good"
    with small_disk(bench.root / "disk_2") as disk:
        hooks = [Fill(disk, range(12, 10**9))]
        process = bench.run(run_dir, 1, save=_save_one(disk), hooks=hooks)
        kept = final_checkpoint(disk.path / run_dir.name)
        reached = int(kept["progress"]["iter"])  # type: ignore[index]
        summary = json.loads((run_dir / "summary.json").read_text())
        if summary["iter"] != bench.iterations or not summary["problem"]:
            raise TrialFailed(f"full_for_good: the summary is {summary}:\n{process.tail()}")
        if not 10 <= reached <= 20:
            raise TrialFailed(f"full_for_good: the checkpoint left is of iteration {reached}")
        disk.clear()
        bench.run(run_dir, save=_save_one(disk))
        bench.check_end(run_dir, store=disk.path / run_dir.name)
    return f"exit code 1 with the problem in summary.json; iteration {reached} kept and resumed"


def fail_while_disk_is_full(bench: Bench) -> str:
    """A tracker and a hook fail while the disk of the run is full: both are reported briefly."""
    run_dir = bench.root / "failing"

    class Fails(Hook):
        on_error = "disable"

        def after_train_iter(self, run: Run) -> None:
            if run.progress.iter == 14:
                raise ConnectionError("no sensor")

    class Unreached(Writer):
        name = "unreached"

        def write(self, records: Iterable[Record]) -> None:
            raise ConnectionError("no service")

    with small_disk(bench.root / "disk_3") as disk:
        (disk.path / "run").mkdir()
        run_dir.symlink_to(disk.path / "run")
        elsewhere = bench.root / "elsewhere"
        hooks = [Fill(disk, range(12, 25)), Fails(), WriteTo(Unreached(), every=13)]
        process = bench.run(run_dir, directory=elsewhere, hooks=hooks)
        log, run_log = process.log.read_text(), (run_dir / "run.log").read_text()
        for words in ("no sensor", "no service"):
            if log.count(words) != 1 or run_log.count(words) != 1:
                raise TrialFailed(f"failing: '{words}' is not once in stderr and run.log:\n{log}")
        if "Traceback" in log or "Logging error" in log:
            raise TrialFailed(f"failing: a message became a traceback:\n{log}")
        summary = json.loads((run_dir / "summary.json").read_text())
        if {one["hook"] for one in summary["disabled"]} != {"fails", "write_to"}:
            raise TrialFailed(f"failing: the summary has {summary['disabled']}")
        # Only the weights: the tracker is a reader of the metric store, which is in the checkpoint.
        stores = (bench.reference, elsewhere / "failing")
        ends = [{"model": final_checkpoint(store)["model"]} for store in stores]
        if differing := compare(*ends):
            raise TrialFailed(f"failing ended differently: {'; '.join(map(str, differing))}")
    return "reported once, in run.log when there was space, and in summary.json; same weights"


def use_small_disk(bench: Bench) -> str:
    """The disk has space for two checkpoints: the oldest is deleted for the newest."""
    run_dir = bench.root / "small_disk"
    size = max(path.stat().st_size for path in bench.reference.glob("*.pth"))
    with small_disk(bench.root / "small", int(size * 2.7)) as disk:
        if disk.kind != "tmpfs":
            return "skipped: nothing may be mounted here"
        save = SaveCheckpoint(1, keep=2, directory=disk.path)
        process = bench.run(run_dir, save=save)
        if "is deleted to make room for" not in process.log.read_text():
            raise TrialFailed(f"small_disk: nothing was deleted:\n{process.tail()}")
        bench.check_end(run_dir, store=disk.path / run_dir.name)
    return "the oldest checkpoint was deleted for each new one; ended bit-equal"


class Hanging(MemoryFileSystem):  # type: ignore[misc]
    """A store that stops answering after some time."""

    protocol = "hanging"
    is_gone = False

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, or hang."""
        while self.is_gone:
            time.sleep(1)
        super().makedirs(path, exist_ok)


def hang_store(bench: Bench) -> str:
    """A store stops answering: training and its end wait for it only as long as allowed."""
    run_dir = bench.root / "hanging"

    class Hang(Hook):
        def after_train_iter(self, run: Run) -> None:
            Hanging.is_gone = run.progress.iter >= 10

    fsspec.register_implementation("hanging", Hanging, clobber=True)
    save = SaveCheckpoint(1, directory="hanging://bucket", max_wait=1)
    began = time.monotonic()
    bench.run(run_dir, 1, save=save, hooks=[Hang()])
    seconds = time.monotonic() - began
    summary = json.loads((run_dir / "summary.json").read_text())
    if summary["iter"] != bench.iterations or "no answer from its store" not in summary["problem"]:
        raise TrialFailed(f"hanging: the summary is {summary}")
    if seconds > bench.seconds * 3 + 20:
        raise TrialFailed(f"hanging: it took {seconds:.0f} s instead of {bench.seconds:.0f}")
    return f"all iterations in {seconds:.1f} s, the problem in summary.json, exit code 1"
