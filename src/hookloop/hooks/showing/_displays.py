"""Three ways to show a run: bars on a terminal, one output in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TextIO

from hookloop.hooks.showing._wording import (
    format_count,
    format_recent,
    format_remaining,
    format_training,
)
from hookloop.runs.shown import make_safe, print_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.live import Live
    from rich.progress import TaskID

    from hookloop.engine.run import Run
    from hookloop.hooks.showing._frame import Frame

REFRESH = 0.1
"""Seconds between two updates of the bars."""


class Display(Protocol):
    """A way to show a run."""

    def show_line(self, line: str, style: str = "") -> None:
        """Show a line that stays."""

    def start(self, run: Run) -> None:
        """Start to show the training."""

    def begin_update(self) -> bool:
        """Return whether it is time for an update, and if so start the next interval."""

    def show_training(self, run: Run, recent: Mapping[str, float]) -> None:
        """Show the progress of the training."""

    def show_evaluation(self, run: Run, done: int, total: int | None) -> None:
        """Show how far an evaluation is."""

    def stop(self) -> None:
        """Leave the screen as other programs expect it."""


def choose_display(file: TextIO | None) -> type[Lines] | type[Bars] | type[Notebook]:
    """Return the display that fits the output."""
    if file is None and _in_notebook():
        return Notebook
    return Bars if _is_terminal(file or sys.stdout) else Lines


class Lines:
    """Plain lines, for files and pipes."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def show_line(self, line: str, style: str = "") -> None:
        """Write a line at once."""
        # `sys.stdout` is looked up each time, since a program may redirect it during the run.
        print_line(self._file or sys.stdout, line)

    def start(self, run: Run) -> None:
        """Do nothing: lines need no start."""

    def begin_update(self) -> bool:
        """Return True: the hook is called at its interval only."""
        return True

    def show_training(self, run: Run, recent: Mapping[str, float]) -> None:
        """Write the progress of the run."""
        self.show_line(format_training(run, recent))

    def show_evaluation(self, run: Run, done: int, total: int | None) -> None:
        """Do nothing: lines show only the result of an evaluation."""

    def stop(self) -> None:
        """Do nothing: lines need no end."""


class Bars:
    """A bar for the run, one for the epoch, one for an evaluation, and the newest numbers."""

    def __init__(self, file: TextIO | None) -> None:
        from rich.console import Console

        self._console = Console(file=file)
        self._live: Live | None = None
        self._next_update = 0.0

    def show_line(self, line: str, style: str = "") -> None:
        """Print a line above the bars."""
        # If the window has become narrower, this clears the old bars first.
        if self._live is not None:
            self._live.refresh()
        text = make_safe(line)
        # Without markup: a path may hold brackets, which rich would take for a style.
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def start(self, run: Run) -> None:
        """Open the bars."""
        # rich is imported only where there is a terminal.
        from rich.live import Live

        from hookloop.hooks.showing._frame import Frame

        self._frame: Frame = Frame(self._console)
        progress = run.progress
        self._run_bar: TaskID = self._frame.add("run", progress.total_iters)
        self._epoch_bar: TaskID = self._frame.add("epoch", progress.epoch_iters)
        self._evaluation_bar: TaskID = self._frame.add("val", None, visible=False)
        self._live = Live(
            self._frame, console=self._console, transient=True, refresh_per_second=1 / REFRESH
        )
        self._live.start()

    def begin_update(self) -> bool:
        """Return whether a change would be visible, and if so start the next interval."""
        now = monotonic()
        if now < self._next_update or self._live is None:
            return False
        self._next_update = now + REFRESH
        return True

    def show_training(self, run: Run, recent: Mapping[str, float]) -> None:
        """Update the bars."""
        progress, bars = run.progress, self._frame.bars
        epoch = format_count(progress.epoch + 1, progress.max_epochs)
        bars.update(self._evaluation_bar, visible=False)
        bars.update(self._run_bar, completed=progress.iter, total=progress.total_iters)
        done, total = progress.iter_in_epoch, progress.epoch_iters
        bars.update(self._epoch_bar, completed=done, total=total)
        self._frame.state = f"epoch {epoch}  eta {format_remaining(run, recent)}"
        self._frame.numbers = make_safe(format_recent(run, recent)).split("  ")

    def show_evaluation(self, run: Run, done: int, total: int | None) -> None:
        """Update the bar of an evaluation."""
        # The last iterations may have come too soon after an update to be shown.
        bars = self._frame.bars
        bars.update(self._run_bar, completed=run.progress.iter)
        bars.update(self._epoch_bar, completed=run.progress.iter_in_epoch)
        bars.update(
            self._evaluation_bar,
            description=run.phase,
            completed=done,
            total=total,
            state=run.stream if run.stream != run.phase else "",
            visible=True,
        )

    def stop(self) -> None:
        """Close the bars."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Notebook:
    """One output that is updated in place, so that a long run does not fill the page."""

    LINES = 25
    REFRESH = 0.5  # Seconds. Each update sends the whole text to the browser.

    def __init__(self, file: TextIO | None) -> None:
        self._lines: deque[str] = deque(maxlen=self.LINES)
        self._status = ""
        self._next_update = 0.0
        self._handle: object = None

    def show_line(self, line: str, style: str = "") -> None:
        """Add a line; the oldest is removed when there are many."""
        self._lines.append(line)
        self._update()

    def start(self, run: Run) -> None:
        """Do nothing: the first line creates the output."""

    def begin_update(self) -> bool:
        """Return whether it is time for an update, and if so start the next interval."""
        now = monotonic()
        if now < self._next_update:
            return False
        self._next_update = now + self.REFRESH
        return True

    def show_training(self, run: Run, recent: Mapping[str, float]) -> None:
        """Show a bar and the newest numbers."""
        total = run.progress.total_iters
        filled = round(30 * run.progress.iter / total) if total else 0
        bar = f"[{'#' * filled}{'.' * (30 - filled)}]  " if total else ""
        self._status = f"{bar}{format_training(run, recent)}"
        self._update()

    def show_evaluation(self, run: Run, done: int, total: int | None) -> None:
        """Show how far an evaluation is."""
        self._status = f"{run.phase}: {format_count(done, total)}"
        self._update()

    def stop(self) -> None:
        """Remove the status; the lines stay."""
        self._status = ""
        self._update()

    def _update(self) -> None:
        text = "\n".join([*self._lines, self._status]).rstrip()
        content = {"text/plain": text}
        # From `sys.modules`: in a notebook it is loaded, and elsewhere it is not a dependency.
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(
                content, raw=True, display_id=True
            )
        else:
            self._handle.update(content, raw=True)  # type: ignore[attr-defined]


def _is_terminal(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:  # The file is closed.
        return False


def _in_notebook() -> bool:
    """Return whether this is a notebook; an IPython shell is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
