"""Measure what a save costs, compared with other libraries: ``python bench/saves.py``.

The state is that of a model with AdamW: about 600 MB. Two things are measured. The *stall* is the
time that the training waits; it is compared with one copy of the state in memory. The *whole save*
ends when the file would survive a crash of the machine: every file is flushed (fsync), whether the
library does it or not. All take turns on the same disk, each with a new file, and the medians are
reported. mmengine, lightning and torch.distributed.checkpoint take part if they are installed. One
thread computes, so that other programs disturb less.

With ``--writer`` another question is answered: how much slower is the training while a thread
writes, and how much slower while a process writes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

import torch
from torch import Tensor, nn

from hookloop import Trainer
from hookloop.checkpoint.saving.checkpoints import Checkpoints
from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.trainer.state.run_state import RunAsOrigin, RunState

WIDTH = 1024

State = dict[str, Any]
Way = Callable[[Path], tuple[float, float]]
"""Saves into a directory; returns the seconds of the stall and of the whole save."""


@dataclass(frozen=True)
class Figure:
    """One measured line of the table."""

    what: str
    stall: float
    whole: float


def make_trainer(layers: int, folder: Path) -> Trainer:
    """Train one iteration, after which the optimizer has its state: 12 MB per layer in total."""
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers)))
    trainer = Trainer(
        model,
        train_data=[(torch.zeros(1, WIDTH), torch.zeros(1, WIDTH))],
        loss=nn.functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters()),
        max_epochs=1,
        default_hooks=False,
        device="cpu",
        run_dir=folder / "run",
    )
    trainer.train()
    return trainer


def tensors_of(state: object) -> list[Tensor]:
    """List the tensors in a nested state."""
    if isinstance(state, Tensor):
        return [state]
    parts = list(state.values()) if isinstance(state, dict) else state
    if not isinstance(parts, list | tuple):
        return []
    return [tensor for part in parts for tensor in tensors_of(part)]


def flush(path: Path) -> None:
    """Make a file, or a directory of files, survive a crash of the machine."""
    for entry in [*(path.rglob("*") if path.is_dir() else []), path, path.parent]:
        descriptor = os.open(entry, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


class Copy:
    """One copy of the state into memory that is already allocated: the measure of a stall."""

    def __init__(self, state: State) -> None:
        self.sources = tensors_of(state)
        self.buffers = [torch.empty_like(source) for source in self.sources]

    def __call__(self, folder: Path) -> tuple[float, float]:
        """Save once."""
        began = time.perf_counter()
        with torch.no_grad():
            for buffer, source in zip(self.buffers, self.sources, strict=True):
                buffer.copy_(source)
        seconds = time.perf_counter() - began
        return seconds, seconds


class Ours:
    """hookloop: a copy in memory, then a thread that writes."""

    def __init__(self, trainer: Trainer) -> None:
        self.checkpoints = Checkpoints(RunAsOrigin(trainer.run, RunState(trainer.run)))

    def __call__(self, folder: Path) -> tuple[float, float]:
        """Save once."""
        began = time.perf_counter()
        self.checkpoints.take([Save("ours.pth", str(folder), metrics={})])
        stall = time.perf_counter() - began
        self.checkpoints.close()
        return stall, time.perf_counter() - began


def blocking(save: Callable[[State, Path], None], state: State) -> Way:
    """Return a way to save with a function that writes the file and does not flush it."""

    def way(folder: Path) -> tuple[float, float]:
        path = folder / "theirs.pth"
        began = time.perf_counter()
        save(state, path)
        flush(path)
        seconds = time.perf_counter() - began
        return seconds, seconds

    return way


def torch_save(state: State, path: Path) -> None:
    """Save as users do by hand."""
    torch.save(state, path)


def mmengine_save(state: State, path: Path) -> None:
    """Save with MMEngine's function, which its CheckpointHook calls."""
    from mmengine.runner.checkpoint import save_checkpoint  # type: ignore[import-not-found,unused-ignore]

    save_checkpoint(state, str(path))


def lightning_save(state: State, path: Path) -> None:
    """Save with the plugin that Lightning's Trainer saves with."""
    from lightning.fabric.plugins.io.torch_io import (  # type: ignore[import-not-found,unused-ignore]
        TorchCheckpointIO,
    )

    TorchCheckpointIO().save_checkpoint(state, str(path))


class Distributed:
    """torch.distributed.checkpoint.async_save, in one process."""

    def __init__(self, state: State) -> None:
        import torch.distributed as dist

        with tempfile.NamedTemporaryFile(delete=False) as file:
            pass
        dist.init_process_group("gloo", init_method=f"file://{file.name}.rendezvous",
                                rank=0, world_size=1)  # fmt: skip
        self.state = {"model": state["model"], "optimizer": state["optimizers"]["default"]}

    def __call__(self, folder: Path) -> tuple[float, float]:
        """Save once."""
        import torch.distributed.checkpoint as checkpoint

        path = folder / "distributed"
        began = time.perf_counter()
        future = cast(
            "Any", cast("Any", checkpoint).async_save(self.state, checkpoint_id=str(path))
        )
        stall = time.perf_counter() - began
        future.result()
        flush(path)
        return stall, time.perf_counter() - began


def measure(ways: dict[str, Way], folder: Path, rounds: int) -> list[Figure]:
    """Let the ways take turns; the first turn of each, with cold caches, is dropped."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    order = random.Random(0)
    for _ in range(rounds + 1):
        # The way before leaves its data in memory, so the order changes.
        for name, way in order.sample(list(ways.items()), len(ways)):
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                os.sync()  # So that none pays for what another left to be written.
                times[name].append(way(Path(fresh)))
    return [
        Figure(name, median(s for s, _ in got[1:]), median(w for _, w in got[1:]))
        for name, got in times.items()
    ]


def ways_of(trainer: Trainer) -> dict[str, Way]:
    """Return the ways to save that take part."""
    state = cast("State", RunState(trainer.run).gather())
    ways: dict[str, Way] = {
        "one copy in memory": Copy(state),
        "hookloop": Ours(trainer),
        "torch.save": blocking(torch_save, state),
    }
    for name, package, save in (
        ("mmengine save_checkpoint", "mmengine", mmengine_save),
        ("lightning TorchCheckpointIO", "lightning", lightning_save),
    ):
        try:
            __import__(package)
        except ImportError:
            print(f"({name} is left out: {package} is not installed)")
        else:
            ways[name] = blocking(save, state)
    ways["torch.distributed async_save"] = Distributed(state)
    return ways


def show(figures: list[Figure], nbytes: int) -> None:
    """Print the table, with both ratios."""
    by_name = {figure.what: figure for figure in figures}
    copy, plain = by_name["one copy in memory"].stall, by_name["torch.save"].whole
    print(f"{nbytes / 1e6:.0f} MB, {torch.get_num_threads()} threads; seconds, fsync included")
    print(f"{'':32}{'stall':>8}{'copies':>8}{'whole':>8}{'torch.save':>12}")
    for figure in figures:
        ratios = f"{figure.stall / copy:8.2f}", f"{figure.whole / plain:12.2f}"
        print(f"{figure.what:32}{figure.stall:8.3f}{ratios[0]}{figure.whole:8.3f}{ratios[1]}")


# --- who should write: a thread or a process ---


def train_while(is_busy: Callable[[], bool], least: float) -> float:
    """Train a small model while busy; return the median microseconds of an iteration."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, times = torch.randn(16, 64), []
    until = time.perf_counter() + least
    while is_busy() or time.perf_counter() < until:
        began = time.perf_counter()
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    return median(times) * 1e6


def _write(store: CheckpointStore, state: State, nbytes: int) -> None:
    store.write(state, Saved("written.pth", store.location, 1, 0), nbytes)


def _process(folder: str, state: State, nbytes: int, go: Any, done: Any) -> None:  # noqa: ANN401
    done.set()
    go.wait()
    done.clear()
    _write(CheckpointStore(folder), state, nbytes)
    done.set()


def compare_writers(trainer: Trainer, folder: Path) -> dict[str, float]:
    """Measure an iteration while nobody, a thread, or a process writes the snapshot."""
    import threading

    import torch.multiprocessing as multiprocessing

    snapshot = Snapshot()
    state = cast("State", snapshot.take(RunState(trainer.run).gather()))
    times = {"nobody writes": train_while(lambda: False, 2.0)}
    store = CheckpointStore(folder)
    thread = threading.Thread(target=_write, args=(store, state, snapshot.nbytes))
    thread.start()
    times["a thread writes"] = train_while(thread.is_alive, 0.0)
    context = multiprocessing.get_context("spawn")
    go, done = context.Event(), context.Event()
    process = context.Process(
        target=_process, args=(str(folder), state, snapshot.nbytes, go, done)
    )  # Passing the tensors moves them to shared memory.
    process.start()
    done.wait()
    done.clear()
    go.set()
    times["a process writes"] = train_while(lambda: not done.is_set(), 0.5)
    process.join()
    return times


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=48, help="12.6 MB of state each")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="on the disk to measure")
    parser.add_argument("--writer", action="store_true", help="compare thread and process instead")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        folder = Path(name)
        trainer = make_trainer(options.layers, folder)
        nbytes = sum(tensor.nbytes for tensor in tensors_of(RunState(trainer.run).gather()))
        if options.writer:
            for who, microseconds in compare_writers(trainer, folder).items():
                print(f"{who:20}{microseconds:8.0f} us per iteration")
            return
        figures = measure(ways_of(trainer), folder, options.rounds)
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=1))
    else:
        show(figures, nbytes)


if __name__ == "__main__":
    main()
