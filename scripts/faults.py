"""Kill, starve and damage a training, and show that nothing durable is lost: ``make faults``.

One training with dropout, random augmentation in two workers, averaged weights, a schedule, early
stopping and a save after every iteration is run once undisturbed. Then it is killed again and
again, with SIGKILL at random moments (while it starts, loads, trains, validates, writes), and
resumed each time; its final checkpoint and its metrics have to be those of the undisturbed run, to
the bit. The other faults follow: every
signal, every way to end, a kill between save and validation, damaged files, links in the place of
files, directories that disappear or cannot be written, disks without room, a store that hangs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

os.environ["OMP_NUM_THREADS"] = "1"  # A process that has threads cannot be forked safely.

import fsspec
import numpy as np
import torch
from fsspec.implementations.memory import MemoryFileSystem
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from hookloop import Hook, Trainer
from hookloop.checkpoint.compare import compare
from hookloop.checkpoint.store import CheckpointStore
from hookloop.core.run import Interrupted, Run
from hookloop.errors import CheckpointError, LinkError
from hookloop.hooks import AverageWeights, SaveCheckpoint, StopOnPlateau, WriteMetrics, WriteTo
from hookloop.writers.base import Writer
from hookloop.writers.records import Record

REFUSED = 2
CLOCKS = ("time", "/data_time", "/iter_time")


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Samples with noise from all three generators."""

    def __init__(self, count: int) -> None:
        self.inputs = torch.randn(count, 16, generator=torch.Generator().manual_seed(count))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Return a sample that is never the same twice."""
        noise = torch.rand(16) + random.random() + np.random.rand()
        return self.inputs[index] + noise, self.inputs[index].sum(0, keepdim=True)


@dataclass(frozen=True)
class Size:
    """How large the training and the number of its deaths are."""

    epochs: int
    kills: int
    patience: int = 4


FULL = Size(epochs=60, kills=100)
SMALL = Size(epochs=5, kills=6)


def make_trainer(run_dir: Path, size: Size, **options: object) -> Trainer:
    """Build the training that all faults befall, to be resumed if there is something to resume."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    persistent = bool(options.pop("persistent", False))
    model = nn.Sequential(
        nn.Linear(16, 32), nn.Dropout(0.3), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    directory = cast("Path | None", options.pop("directory", None))
    save = options.pop("save", SaveCheckpoint(1, keep=2, best="val/loss", directory=directory))
    hooks = [
        AverageWeights(momentum=0.05),
        StopOnPlateau("val/loss", patience=size.patience, min_delta=0.05),
        *options.pop("hooks", ()),  # type: ignore[misc]
    ]
    return Trainer(
        model,
        train_data=DataLoader(
            Noisy(80), batch_size=8, shuffle=True, num_workers=2, persistent_workers=persistent
        ),
        val_data=DataLoader(Noisy(16), batch_size=8),
        loss=nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999),
        max_epochs=size.epochs,
        max_iters=cast("int | None", options.pop("end", None)),
        hooks=hooks,
        default_hooks={
            "console": None,
            "checkpoint": cast("Hook", save),
            "metrics": WriteMetrics(every=1),
        },
        run_dir=run_dir,
        resume="auto",
        seed=7,
        device="cpu",
        **options,  # type: ignore[arg-type]
    )


class Fault(Exception):
    """Something that must not happen has happened."""


class Life:
    """One process of a run. It is forked, because importing torch takes longer than training.

    Args:
        run_dir: The run.
        make: Builds the trainer, in the new process.
    """

    def __init__(self, run_dir: Path, make: Callable[[], Trainer]) -> None:
        self.log = run_dir.with_suffix(".log")
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_live(make, self.log))
        self._handle = os.pidfd_open(self.pid)

    def wait(self, seconds: float | None = None, *, alone: bool = False) -> int | None:
        """Return the exit code, minus the signal's number if one killed it; None if it lives on.

        What it left behind is killed, unless it is to be waited for ``alone``.
        """
        ready, _, _ = select.select([self._handle], [], [], seconds)
        if not ready:
            return None
        _, status = os.waitpid(self.pid, 0)
        os.close(self._handle)
        if not alone:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)  # Its workers would notice only after a while.
        return os.waitstatus_to_exitcode(status)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, as an operating system short of memory does."""
        os.kill(self.pid, number)

    def has_processes(self) -> bool:
        """Return whether there are processes that it has started."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def finish(self) -> int:
        """Wait for its end."""
        code = self.wait()
        assert code is not None
        return code

    def tail(self) -> str:
        """Return the last lines that it said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def _live(make: Callable[[], Trainer], log: Path) -> int:
    os.setsid()
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        return make().train().exit_code
    except Interrupted as interruption:
        return interruption.outcome.exit_code
    except (CheckpointError, LinkError) as error:
        print(f"refused: {error}", flush=True)
        return REFUSED
    except BaseException:  # noqa: BLE001 - a process that is forked must not return to its caller
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@dataclass
class Bench:
    """The place and the measure of all trials: an undisturbed run."""

    root: Path
    size: Size
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.reference = self.root / "reference"
        self.random = random.Random(self.seed)
        _warm_up()
        began = time.monotonic()
        self.run(self.reference)
        self.seconds = time.monotonic() - began
        began = time.monotonic()
        self.kill_at(self.root / "stillborn", 1)
        self.start_seconds = time.monotonic() - began
        summary = json.loads((self.reference / "summary.json").read_text())
        self.iterations, self.ending = summary["iter"], summary["reason"] or summary["status"]

    def start(self, run_dir: Path, **options: object) -> Life:
        """Begin or resume the training in a process of its own."""
        return Life(run_dir, lambda: make_trainer(run_dir, self.size, **options))

    def run(self, run_dir: Path, expected: int = 0, **options: object) -> Life:
        """Train to the end, which has to be the expected one."""
        life = self.start(run_dir, **options)
        code = life.finish()
        if code != expected:
            raise Fault(f"{run_dir.name}: exit code {code} instead of {expected}:\n{life.tail()}")
        return life

    def check_end(self, run_dir: Path, *, metrics: bool = True, place: Path | None = None) -> None:
        """Hold the end of a run against that of the undisturbed one."""
        theirs, ours = _final(self.reference), _final(place or run_dir)
        hooks = cast("dict[str, object]", ours["hooks"])
        for name in hooks.keys() - cast("dict[str, object]", theirs["hooks"]):
            del hooks[name]  # Those that brought the fault about.
        differing = [
            difference
            for difference in compare(theirs, ours)
            # What went wrong with saving is part of the state of the hook that saves.
            # The hooks that bring a fault about act at points at which no other one does.
            if not difference.key.startswith(("hooks.checkpoint.best", "side_randomness.drawn"))
        ]
        if differing:
            raise Fault(f"{run_dir.name} ended otherwise: {'; '.join(map(str, differing))}")
        if metrics and _metrics(self.reference) != _metrics(run_dir):
            raise Fault(f"{run_dir.name}: its metrics.jsonl differs from the undisturbed run's")

    def kill_at(self, run_dir: Path, iteration: int, **options: object) -> None:
        """Let a run die when it has made so many iterations."""
        life = self.start(run_dir, hooks=[DieAt(iteration)], **options)
        if (code := life.finish()) != -signal.SIGKILL:
            raise Fault(f"{run_dir.name}: exit code {code} instead of a death:\n{life.tail()}")


def _warm_up() -> None:
    """Let this process import what training needs, so that those forked from it need not."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(Path(folder) / "run", SMALL)
        loss = trainer.run.model(torch.zeros(2, 16)).sum()
        loss.backward()
        trainer.run.optimizer.step()


def _final(place: Path) -> dict[str, object]:
    found = CheckpointStore(place).newest()
    if found is None:
        raise Fault(f"'{place}' has no checkpoint")
    return found[1]


def _metrics(run_dir: Path) -> list[dict[str, object]]:
    records = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{key: one[key] for key in one if not key.endswith(CLOCKS)} for one in records]


class DieAt(Hook):
    """Kills its process, without a word, when so many iterations are saved."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_save_checkpoint(self, run: Run, saved: object) -> None:
        """Die."""
        if run.progress.iter >= self.iteration:
            os.kill(os.getpid(), signal.SIGKILL)


# --- the trials ---


def kill_at_random(bench: Bench) -> str:
    """Kill the training at random moments until the count is full, then let it end."""
    counts, lives, run_dir = bench.counts, 0, bench.root / "killed_1"
    furthest, began = 0, time.monotonic()
    while True:
        life = bench.start(run_dir)
        lives += 1
        enough = counts["kills"] >= bench.size.kills
        # One in five may die before it has loaded its checkpoint, the others later.
        earliest = 0.0 if bench.random.random() < 0.2 else 0.7 * bench.start_seconds
        delay = bench.random.uniform(earliest, bench.start_seconds + 0.5)
        code = life.wait(None if enough else delay)
        if code is None:
            life.send(signal.SIGKILL)
            code = life.finish()
        if code == -signal.SIGKILL:
            counts["kills"] += 1
            furthest = _look_at_the_dead(run_dir, furthest, counts)
        elif code == 0:
            bench.check_end(run_dir)
            counts["whole runs"] += 1
            if counts["kills"] >= bench.size.kills:
                break
            run_dir, furthest = bench.root / f"killed_{counts['whole runs'] + 1}", 0
        else:
            raise Fault(f"{run_dir.name}: a resume failed with exit code {code}:\n{life.tail()}")
    seconds = time.monotonic() - began
    return (
        f"{counts['kills']} kills in {seconds:.0f} s ({counts['inside a write']} of them inside a "
        f"write, {counts['before any checkpoint']} before the first checkpoint); every resume "
        f"succeeded, {counts['whole runs']} runs of {bench.iterations} iterations ended bit-equal"
    )


def _look_at_the_dead(run_dir: Path, furthest: int, counts: Counter[str]) -> int:
    """See how far it had come; what was durable once has to stay so."""
    if list(run_dir.glob(".*.staged")):
        counts["inside a write"] += 1
    found = CheckpointStore(run_dir).newest()
    if found is None:
        counts["before any checkpoint"] += 1
        reached = 0
    else:
        reached = int(found[1]["progress"]["iter"])  # type: ignore[index]
    if reached < furthest:
        raise Fault(f"{run_dir.name} fell back from iteration {furthest} to {reached}")
    return reached


SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")


class SendAt(Hook):
    """Sends a signal to its own process, or to all of its group, after an iteration."""

    def __init__(self, iteration: int, number: signal.Signals, *, to_all: bool = False) -> None:
        self.iteration = iteration
        self.number = number
        self.to_all = to_all

    def after_train_iter(self, run: Run) -> None:
        """Send it."""
        if run.progress.iter == self.iteration:
            (os.killpg if self.to_all else os.kill)(os.getpid(), self.number)


def end_by_signals(bench: Bench) -> str:
    """Each signal: a checkpoint of the last iteration exists, the exit code is 128 + signal."""
    for place, name in enumerate(SIGNALS):
        run_dir, number = bench.root / name, signal.Signals[name]
        bench.run(run_dir, 128 + number, hooks=[SendAt(17, number, to_all=place % 2 == 1)])
        reached = _final(run_dir)["progress"]["iter"]  # type: ignore[index]
        if reached != 17:
            raise Fault(f"{name}: the checkpoint is of iteration {reached}, not of 17")
    bench.run(run_dir)
    bench.check_end(run_dir)
    names = ", ".join(SIGNALS)
    return f"{names}: exit code 128 + n, saved in the iteration it came in; resumed bit-equal"


class EndAt(Hook):
    """Ends the training in one of the ways a script can end."""

    def __init__(self, way: str) -> None:
        self.way = way

    def after_train_iter(self, run: Run) -> None:
        """Do it."""
        if run.progress.iter != 3 or self.way == "by itself":
            return
        if self.way == "with an exception":
            raise RuntimeError("the user's own")
        if self.way == "with sys.exit":
            sys.exit(3)
        if self.way == "with os._exit":
            os._exit(4)
        if self.way == "with Ctrl-C":
            raise KeyboardInterrupt
        number = signal.SIGKILL if self.way == "killed" else signal.SIGTERM
        (os.killpg if self.way == "with its group" else os.kill)(os.getpid(), number)


WAYS = {
    "by itself": 0,
    "with an exception": 1,
    "with sys.exit": 1,
    "with os._exit": 4,
    "with Ctrl-C": 1,
    "with SIGTERM": 143,
    "with its group": 143,
    "killed": -9,
}


def leave_processes(bench: Bench) -> str:
    """However it ends, it ends, and its workers with it."""
    slowest = 0.0
    for place, (way, expected) in enumerate(WAYS.items()):
        run_dir = bench.root / f"ended_{place}"
        life = bench.start(run_dir, hooks=[EndAt(way)], persistent=True, end=5)
        code = life.wait(60, alone=True)
        if code != expected:
            raise Fault(f"ended {way}: exit code {code} instead of {expected}:\n{life.tail()}")
        began = time.monotonic()
        while life.has_processes():
            if time.monotonic() - began > 20:
                raise Fault(f"ended {way}: it left processes behind")
            time.sleep(0.05)
        slowest = max(slowest, time.monotonic() - began)
    return f"{len(WAYS)} ways, with persistent workers: none left after {slowest:.1f} s at most"


class DieInValidation(Hook):
    """Kills its process between a save and its validation."""

    def before_val(self, run: Run) -> None:
        """Die, once the checkpoint is there."""
        if run.progress.epoch == 2:
            while not (run.dir / f"iter_{run.progress.iter}.pth").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)


def kill_before_validation(bench: Bench) -> str:
    """Killed between save and validation: the entry gets the numbers of its own iteration."""
    run_dir = bench.root / "unvalidated"
    life = bench.start(run_dir, hooks=[DieInValidation()])
    if (code := life.finish()) != -signal.SIGKILL:
        raise Fault(f"unvalidated: exit code {code} instead of a death:\n{life.tail()}")
    newest = max(CheckpointStore(run_dir).index.entries.values(), key=lambda one: one.iter)
    if newest.validated or any(name.startswith("val/") for name in newest.metrics):
        raise Fault(f"unvalidated: '{newest.name}' has a validation that never was")
    bench.kill_at(run_dir, newest.iter + 1)
    amended = CheckpointStore(run_dir).index.entries[newest.name]
    measured = [one for one in _metrics(bench.reference) if one["iter"] == newest.iter]
    expected = next(one["val/loss"] for one in measured if one["phase"] == "val")
    if not amended.validated or amended.metrics.get("val/loss") != expected:
        raise Fault(f"unvalidated: the entry has {amended.metrics}, measured was {expected}")
    bench.run(run_dir)
    bench.check_end(run_dir)
    return "its entry was amended with its own validation by the resume; ended bit-equal"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "bit-flipped": lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    "empty": lambda data: b"",
    "foreign": lambda data: b"GIF89a" * 1000,
}


def damage_files(bench: Bench) -> str:
    """The newest file is damaged: the one before is taken, with a word about both."""
    for kind, damage in DAMAGES.items():
        run_dir = bench.root / kind
        bench.kill_at(run_dir, 15)
        newest = run_dir / (run_dir / "last_checkpoint").read_text().strip()
        newest.write_bytes(damage(newest.read_bytes()))
        life = bench.run(run_dir)
        said = life.log.read_text()
        if newest.name not in said or "Resuming from 'iter_" not in said:
            raise Fault(f"{kind}: it was not said which file was skipped for which")
        bench.check_end(run_dir)
    return f"{', '.join(DAMAGES)}: skipped for the file before, with a word; ended bit-equal"


def damage_all_files(bench: Bench) -> str:
    """Every file is damaged: refused, and nothing is trained from zero."""
    run_dir = bench.root / "all_damaged"
    bench.kill_at(run_dir, 15)
    for path in run_dir.glob("*.pth"):
        path.write_bytes(DAMAGES["truncated"](path.read_bytes()))
    before = sorted(path.name for path in run_dir.iterdir() if path.name[0] != ".")
    life = bench.run(run_dir, REFUSED)
    if "No checkpoint in" not in life.log.read_text():
        raise Fault(f"all_damaged: it was refused for another reason:\n{life.tail()}")
    if [name for name in before if not (run_dir / name).exists()]:
        raise Fault("all_damaged: files disappeared")
    return "refused with the reason of each file; nothing was trained or deleted"


def plant_links(bench: Bench) -> str:
    """Files of the run are links to others: those that are continued are refused, none followed."""
    run_dir, victim = bench.root / "links", bench.root / "victim"
    bench.kill_at(run_dir, 15)
    victim.write_text("precious")
    for name in (".lock", "metrics.jsonl", "run.log"):
        place, kept = run_dir / name, bench.root / "kept"
        if place.exists():
            shutil.move(place, kept)
        place.symlink_to(victim)
        life = bench.run(run_dir, REFUSED)
        if "is a symbolic link" not in life.log.read_text():
            raise Fault(f"links: '{name}' was refused for another reason:\n{life.tail()}")
        place.unlink()
        if kept.exists():
            shutil.move(kept, place)
    for name in ("summary.json", "config.yaml", "checkpoints.json"):
        (run_dir / name).unlink(missing_ok=True)
        (run_dir / name).symlink_to(victim)
    bench.run(run_dir)
    if victim.read_text() != "precious":
        raise Fault("links: the file that a link leads to was written to")
    bench.check_end(run_dir)
    return "none was followed; ended bit-equal once the links were gone"


def remove_directory(bench: Bench) -> str:
    """The directory disappears while training: it goes on, and saves again."""
    run_dir = bench.root / "removed"

    class Remove(Hook):
        def after_train_iter(self, run: Run) -> None:
            if run.progress.iter == 15:
                shutil.rmtree(run.dir, ignore_errors=True)

    life = bench.run(run_dir, hooks=[Remove()])
    bench.check_end(run_dir)
    if "were deleted while it is trained in" not in life.log.read_text():
        raise Fault(f"removed: it was not reported:\n{life.tail()}")
    return "reported, made again with all metrics, and saved to again; ended bit-equal"


def fill_disk_for_a_while(bench: Bench) -> str:
    """The disk is full for some iterations: training goes on, and saving once there is room."""
    run_dir = bench.root / "full_for_a_while"
    with small_disk(bench.root / "disk_1") as disk:
        hooks = [Fill(disk, range(12, 25))]
        life = bench.run(run_dir, directory=disk.path, hooks=hooks)
        said = life.log.read_text()
        for words in ("could not be saved", "the problem is over"):
            if said.count(words) != 1:
                raise Fault(f"full_for_a_while: '{words}' was said {said.count(words)} times")
        bench.check_end(run_dir, place=disk.path / run_dir.name)
        return f"said once, trained on, saved again when there was room ({disk.kind}); bit-equal"


def fill_disk_for_good(bench: Bench) -> str:
    """The disk stays full: the last good checkpoint is kept, the end is not called a success."""
    run_dir = bench.root / "full_for_good"
    with small_disk(bench.root / "disk_2") as disk:
        life = bench.run(run_dir, 1, directory=disk.path, hooks=[Fill(disk, range(12, 10**9))])
        reached = int(_final(disk.path / run_dir.name)["progress"]["iter"])  # type: ignore[index]
        summary = json.loads((run_dir / "summary.json").read_text())
        if summary["iter"] != bench.iterations or not summary["problem"]:
            raise Fault(f"full_for_good: the summary is {summary}:\n{life.tail()}")
        if not 10 <= reached <= 12:
            raise Fault(f"full_for_good: the checkpoint left is of iteration {reached}")
        disk.clear()
        bench.run(run_dir, directory=disk.path)
        bench.check_end(run_dir, place=disk.path / run_dir.name)
    return f"exit code 1 with the problem in summary.json; iteration {reached} kept and resumed"


def fail_while_the_disk_is_full(bench: Bench) -> str:
    """A tracker and a hook fail while the run's own disk is full: both are reported, in short."""
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
        life = bench.run(run_dir, directory=elsewhere, hooks=hooks)
        said, kept = life.log.read_text(), (run_dir / "run.log").read_text()
        for words in ("no sensor", "no service"):
            if said.count(words) != 1 or kept.count(words) != 1:
                raise Fault(f"failing: '{words}' was not reported once in each place:\n{said}")
        if "Traceback" in said or "Logging error" in said:
            raise Fault(f"failing: a message became a traceback:\n{said}")
        summary = json.loads((run_dir / "summary.json").read_text())
        if {one["hook"] for one in summary["disabled"]} != {"fails", "write_to"}:
            raise Fault(f"failing: the summary has {summary['disabled']}")
        # The tracker has a mark in the metric store, so that only the weights can be the same.
        ends = [{"model": _final(one)["model"]} for one in (bench.reference, elsewhere / "failing")]
        if differing := compare(*ends):
            raise Fault(f"failing ended otherwise: {'; '.join(map(str, differing))}")
    return "reported once, in run.log when there was room, and in summary.json; same weights"


def forbid_writing(bench: Bench) -> str:
    """The directory is read-only at the end: training returns, with the problem."""
    run_dir = bench.root / "read_only"

    class Forbid(Hook):
        def after_train_epoch(self, run: Run) -> None:
            if run.progress.epoch == 2:  # A file in its place is what even root cannot write into.
                shutil.move(run.dir, run.dir.with_suffix(".moved"))
                run.dir.write_text("not a directory")

    life = bench.run(run_dir, 1, hooks=[Forbid()], end=20)
    if "could not be saved" not in life.log.read_text() or "Traceback" in life.log.read_text():
        raise Fault(f"read_only: it was not reported, or with a traceback:\n{life.tail()}")
    return "train() returned with the problem and exit code 1"


def use_small_disk(bench: Bench) -> str:
    """The disk holds two checkpoints and no third: the oldest makes room for the newest."""
    run_dir = bench.root / "small_disk"
    size = max(path.stat().st_size for path in bench.reference.glob("*.pth"))
    with small_disk(bench.root / "small", int(size * 2.7)) as disk:
        if disk.kind != "tmpfs":
            return "not tried: nothing may be mounted here"
        save = SaveCheckpoint(1, keep=2, directory=disk.path)
        life = bench.run(run_dir, save=save)
        if "is deleted to make room for" not in life.log.read_text():
            raise Fault(f"small_disk: nothing was deleted:\n{life.tail()}")
        bench.check_end(run_dir, place=disk.path / run_dir.name)
    return "the oldest checkpoint was given up for each new one; ended bit-equal"


class Hanging(MemoryFileSystem):  # type: ignore[misc]
    """A store of which every call hangs after some time."""

    protocol = "hanging"
    is_gone = False

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, or hang."""
        while self.is_gone:
            time.sleep(1)
        super().makedirs(path, exist_ok)


def hang_store(bench: Bench) -> str:
    """A store stops answering: training and its end wait for it no longer than they should."""
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
        raise Fault(f"hanging: the summary is {summary}")
    if seconds > bench.seconds * 3 + 20:
        raise Fault(f"hanging: it took {seconds:.0f} s instead of {bench.seconds:.0f}")
    return f"all iterations in {seconds:.1f} s, the problem in summary.json, exit code 1"


@dataclass
class Disk:
    """A place that can be filled."""

    path: Path
    kind: str

    def fill(self) -> None:
        """Leave no room."""
        if self.kind == "tmpfs":
            with (self.path / "ballast").open("wb") as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        else:  # Where nothing may be mounted, files may not grow: writing fails all the same.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

    def clear(self) -> None:
        """Make room again."""
        (self.path / "ballast").unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


class Fill(Hook):
    """Keeps a disk full for some iterations."""

    def __init__(self, disk: Disk, during: range) -> None:
        self.disk = disk
        self.during = during
        self._is_full = False

    def before_train_iter(self, run: Run) -> None:
        """Fill or clear it."""
        full = run.progress.iter in self.during
        if full != self._is_full:
            self._is_full = full
            (self.disk.fill if full else self.disk.clear)()


@contextmanager
def small_disk(path: Path, size: int = 2 << 20) -> Iterator[Disk]:
    """Mount a small disk in memory, where that is allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield Disk(path, "tmpfs" if mounted else "RLIMIT_FSIZE")
    finally:
        if mounted:
            subprocess.run(["umount", str(path)], check=True)


TRIALS: dict[str, Callable[[Bench], str]] = {
    "SIGKILL at random moments": kill_at_random,
    "signals": end_by_signals,
    "every way to end": leave_processes,
    "killed between save and validation": kill_before_validation,
    "damaged newest file": damage_files,
    "all files damaged": damage_all_files,
    "links in the place of files": plant_links,
    "directory removed": remove_directory,
    "directory read-only at the end": forbid_writing,
    "disk too small for one more": use_small_disk,
    "store that hangs": hang_store,
    "disk full for a while": fill_disk_for_a_while,
    "disk full for good": fill_disk_for_good,
    "hooks that fail on a full disk": fail_while_the_disk_is_full,
}


def examine(root: Path, size: Size, seed: int = 0, say: Callable[[str], None] = print) -> Bench:
    """Go through all trials; the first thing that must not happen ends it with a `Fault`."""
    bench = Bench(root, size, seed)
    say(f"undisturbed: {bench.iterations} iterations in {bench.seconds:.1f} s ({bench.ending})")
    for name, trial in TRIALS.items():
        began = time.monotonic()
        result = trial(bench)
        say(f"{name}: {result} [{time.monotonic() - began:.1f} s]")
    return bench


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a few kills, as in the tests")
    parser.add_argument("--kills", type=int, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    size = SMALL if options.small else FULL
    if options.kills:
        size = Size(size.epochs, options.kills, size.patience)
    with tempfile.TemporaryDirectory(prefix="hookloop-faults-") as folder:
        try:
            examine(Path(folder), size, options.seed)
        except Fault as fault:
            raise SystemExit(f"FAULT: {fault}") from fault


if __name__ == "__main__":
    main()
