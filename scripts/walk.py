"""Count the files and lines of the package that five walks enter, from their begin to their end.

A batch to the step, a loss to its file, a request to the durable checkpoint, a resume, and a config
to its Trainer. Each is a real training. Python's profiler reports every function call in every
thread, and the files of the package in which one takes place are counted. What a module does while
it is imported is no part of a walk.

A station is a file from which the walk goes on into another one. A helper is a file that is only
asked, and answers without another one: it can be read by its name alone.

python scripts/walk.py [--files]
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from torch import nn

import hookloop
from hookloop import Hook, Run, Trainer
from hookloop.hooks import SaveCheckpoint, WriteMetrics, WriteTensorBoard

PACKAGE = Path(hookloop.__file__).parent
EXAMPLE = Path(__file__).parent.parent / "examples" / "digits" / "config.yaml"


class _Mark(Hook):
    """A hook of the measurement itself, which must not add to what it measures."""

    draws_random_numbers = False


class Walk:
    """Notes the files that are entered between two mount points, and later in other threads.

    Args:
        first: The mount point at which to begin, before any other hook.
        last: The mount point at which to end, after all other hooks.
        iteration: Which iteration to watch, counted in completed ones; None for any.
    """

    def __init__(self, first: str, last: str, iteration: int | None = None) -> None:
        self.files: set[Path] = set()
        self.stations: set[Path] = set()
        self._is_on = False
        self._iteration = iteration
        begin, end = _Mark().named("begin"), _Mark().named("end")
        begin.priority, end.priority = 0, 100
        setattr(begin, first, self._begin)
        setattr(end, last, self._end)
        self.hooks = [begin, end]

    def _begin(self, run: Run, *args: object) -> None:
        self._is_on = self._iteration is None or run.progress.iter + 1 == self._iteration

    def _end(self, run: Run, *args: object) -> None:
        self._is_on = False

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        """Take what the profiler reports."""
        is_elsewhere = threading.current_thread() is not threading.main_thread()
        if event == "call" and (self._is_on or (is_elsewhere and self.files)):
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                callers = list(_callers(frame))
                if not any(one.f_code.co_name == "<module>" for one in (frame, *callers)):
                    self.files.add(file)
                    caller = Path(callers[0].f_code.co_filename) if callers else file
                    self.stations |= {caller} - {file}

    def take(self, trainer: Trainer) -> None:
        """Train, and watch."""
        with self.watching():
            trainer.train()

    @contextmanager
    def watching(self, *, at_once: bool = False) -> Iterator[None]:
        """Watch what is called, at once or from the first mount point."""
        self._is_on = at_once
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def names(self) -> set[str]:
        """Return the files that were entered, as they are named in the package."""
        return {file.relative_to(PACKAGE).as_posix() for file in self.files}

    def report(self, name: str, *, with_files: bool) -> None:
        """Print what was entered, in the order of the layers' names."""
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in self.files)
        stations = {one.relative_to(PACKAGE).as_posix() for one in self.stations & self.files}
        helpers = len(self.files) - len(stations)
        print(
            f"{len(self.files):>5} files ({len(stations):>2} stations, {helpers:>2} helpers) "
            f"{lines:>6} lines  {name}"
        )
        for file in sorted(self.names()) if with_files else ():
            print(f"    {'station' if file in stations else '       '} {file}")


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the frames of the package that wait for one, the nearest first."""
    while (back := frame.f_back) is not None:
        frame = back
        if Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            yield frame


def trainer_with(*hooks: Hook, **arguments: object) -> Trainer:
    """Return a trainer of a tiny model, for six iterations."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    given: dict[str, object] = {
        "train_data": [(torch.ones(4, 2), torch.zeros(4, 1))] * 6,
        "loss": nn.functional.mse_loss,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "hooks": hooks,
        "max_epochs": 1,
    }
    return Trainer(model, **given | arguments)  # type: ignore[arg-type]


def way_of_the_loss(runs: Path) -> Walk:
    """Follow a loss to the file of a log."""
    walk = Walk("before_train_iter", "after_train_iter", iteration=3)
    hooks = [WriteTensorBoard(every=3), *walk.hooks]
    walk.take(trainer_with(*hooks, default_hooks=False, run_dir=runs / "loss"))
    return walk


def way_of_a_checkpoint(runs: Path) -> Walk:
    """Follow a save to the disk."""
    walk = Walk("after_train_iter", "before_train_iter", iteration=4)
    keep = SaveCheckpoint("3 iters")
    walk.take(trainer_with(keep, *walk.hooks, default_hooks=False, run_dir=runs / "save"))
    return walk


def way_of_a_batch(runs: Path) -> Walk:
    """Follow a batch from the loader to the step of the optimizer, without hooks."""
    walk = Walk("after_train_iter", "after_update", iteration=4)
    data = torch.utils.data.TensorDataset(torch.ones(24, 2), torch.zeros(24, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    walk.take(trainer_with(*walk.hooks, default_hooks=False, train_data=loader))
    return walk


def way_to_metrics_file(runs: Path) -> Walk:
    """Follow a loss to metrics.jsonl."""
    walk = Walk("before_train_iter", "after_train_iter", iteration=3)
    hooks = [WriteMetrics(every=3), *walk.hooks]
    walk.take(trainer_with(*hooks, default_hooks=False, run_dir=runs / "loss"))
    return walk


def way_of_a_resume(runs: Path) -> Walk:
    """Follow a resume, from before_run to its first iteration."""
    given = {"default_hooks": False, "run_dir": runs / "resumed"}
    trainer_with(SaveCheckpoint("3 iters"), **given).train()
    walk = Walk("before_run", "before_train_iter")
    keep = SaveCheckpoint("3 iters")
    walk.take(trainer_with(keep, *walk.hooks, **given, resume=True, max_epochs=2))
    return walk


def way_of_a_config(runs: Path) -> Walk:
    """Follow a config file to its Trainer."""
    from hookloop.config.build import build
    from hookloop.config.load import load

    walk = Walk("before_run", "before_run")
    with walk.watching(at_once=True):
        build(load(EXAMPLE, [f"run_dir={runs / 'config'}"]))
    return walk


WALKS = {
    "a batch to the step": way_of_a_batch,
    "a loss to metrics.jsonl": way_to_metrics_file,
    "a request to the durable checkpoint": way_of_a_checkpoint,
    "a resume to its first iteration": way_of_a_resume,
    "a config to its Trainer": way_of_a_config,
}


def main() -> None:
    """Take all walks."""
    with tempfile.TemporaryDirectory() as directory:
        for name, way in WALKS.items():
            way(Path(directory)).report(name, with_files="--files" in sys.argv)


if __name__ == "__main__":
    main()
