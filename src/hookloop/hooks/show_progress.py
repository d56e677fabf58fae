"""`ShowProgress`: the run on the screen."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TextIO

from hookloop.core.hook import Hook, interval_of
from hookloop.core.lr import learning_rates
from hookloop.core.priority import Priority
from hookloop.every import Every

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hookloop.core.run import Run

REFRESH = 0.1  # Seconds between two updates of the bars.


class ShowProgress(Hook):
    """Show a progress bar on a terminal, and plain lines everywhere else.

    Args:
        every: Interval of the plain lines, in iterations or time.
        file: Where to; the standard output by default.

    Example:
        >>> str(ShowProgress(every=10).every)
        '10 iters'
    """

    priority = Priority.BELOW_NORMAL
    on_error = "disable"

    def __init__(self, every: Every | int | str = 50, file: TextIO | None = None) -> None:
        interval = interval_of(self, every)
        self._file = file
        self._display: Display | None = None
        self._is_terminal = (file or sys.stdout).isatty()
        # The bar looks at the clock itself, which costs less than a schedule in seconds would.
        self.every = None if self._is_terminal else interval

    def before_run(self, run: Run) -> None:
        if not run.world.is_main:
            return
        file = self._file or sys.stdout
        self._display = Bars(file) if self._is_terminal else Lines(file)

    def before_train(self, run: Run) -> None:
        if self._display is not None:
            progress = run.progress
            again = f", going on after iteration {progress.iter}" if progress.iter else ""
            self._display.say(f"{run.dir}  on {run.device}{again}")
            self._display.say(f"hooks: {', '.join(hook.name for hook in run.hooks)}")
            self._display.start(run)

    def after_train_iter(self, run: Run) -> None:
        if self._display is not None:
            self._display.iteration(run)

    def after_train_epoch(self, run: Run) -> None:
        means = run.metrics.stream("train")
        self._say(run, "train", {n: mean for n, mean in means.items() if not n.endswith("_time")})

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._say(run, "val", metrics)

    def after_test_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        self._say(run, "test", metrics)

    def after_run(self, run: Run) -> None:
        if self._display is None:
            return
        self._display.stop()
        outcome = run.outcome
        reason = f" ({outcome.reason})" if outcome.reason else ""
        if run.phase == "train" and outcome.status != "completed":
            self._display.say(f"{outcome.status}{reason} after iteration {run.progress.iter}")

    def _say(self, run: Run, phase: str, metrics: Mapping[str, float]) -> None:
        if self._display is not None:
            where = f"epoch {_of(run.progress.epoch, run.progress.max_epochs)}"
            if run.progress.max_epochs is None:
                where += f"  iter {_of(run.progress.iter, run.progress.max_iters)}"
            self._display.say(f"{where}  {phase}: {_numbers(metrics)}")


class Display(Protocol):
    """A way to show a run."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def start(self, run: Run) -> None:
        """Begin to show the training."""

    def iteration(self, run: Run) -> None:
        """Show how far it is."""

    def stop(self) -> None:
        """Leave the screen as other programs expect it."""


class Lines:
    """Plain lines, for files and pipes."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def say(self, line: str) -> None:
        """Write a line, at once."""
        self._file.write(line + "\n")
        self._file.flush()

    def start(self, run: Run) -> None:
        """Lines need no beginning."""

    def iteration(self, run: Run) -> None:
        """Write where the run stands."""
        progress = run.progress
        parts = [f"iter {_of(progress.iter, progress.total_iters)}"]
        if progress.max_epochs != 1:
            parts.insert(0, f"epoch {_of(progress.epoch + 1, progress.max_epochs)}")
        self.say("  ".join((*parts, _state(run), f"eta {_eta(run)}")))

    def stop(self) -> None:
        """Lines need no end."""


class Bars:
    """A bar for the run and one for the epoch, refreshed a few times a second."""

    def __init__(self, file: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=file)
        self._bars: Progress | None = None
        self._next = 0.0

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, markup=False, highlight=False)

    def start(self, run: Run) -> None:
        """Open the bars."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Group

        self._bars = Group(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            transient=True,
        )
        progress = run.progress
        self._run_bar = self._bars.add_task("run", total=progress.total_iters, state="")
        self._epoch_bar = self._bars.add_task("epoch", total=progress.epoch_iters, state="")
        self._bars.start()

    def iteration(self, run: Run) -> None:
        """Move the bars, if that is visible yet."""
        now = monotonic()
        if now < self._next or self._bars is None:
            return
        self._next = now + REFRESH
        progress = run.progress
        self._bars.update(
            self._run_bar,
            completed=progress.iter,
            total=progress.total_iters,
            state=f"epoch {_of(progress.epoch + 1, progress.max_epochs)}  eta {_eta(run)}",
        )
        self._bars.update(
            self._epoch_bar,
            completed=progress.iter_in_epoch,
            total=progress.epoch_iters,
            state=_state(run),
        )

    def stop(self) -> None:
        """Close the bars."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    _run_bar: TaskID
    _epoch_bar: TaskID


def _state(run: Run) -> str:
    """Describe losses, learning rate and speed, as means over recent iterations."""
    names = [name for name in run.metrics.names() if name.startswith("train/")]
    recent = run.metrics.smooth(names, 50)
    seconds = recent.pop("train/iter_time", None)
    waiting = recent.pop("train/data_time", None)
    shown = {name.removeprefix("train/"): value for name, value in recent.items()}
    text = _numbers(shown | learning_rates(run))
    if seconds is not None and waiting is not None:
        text += f"  {1000 * seconds:.3g} ms/iter (data {1000 * waiting:.2g})"
    return text


def _eta(run: Run) -> str:
    total = run.progress.total_iters
    if total is None or "train/iter_time" not in run.metrics:
        return "?"
    seconds = run.metrics.smooth(["train/iter_time"])["train/iter_time"]
    return str(timedelta(seconds=round(seconds * max(0, total - run.progress.iter))))


def _of(done: int, limit: int | None) -> str:
    return f"{done}/{limit}" if limit is not None else str(done)


def _numbers(values: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())
