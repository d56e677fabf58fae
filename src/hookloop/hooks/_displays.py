"""Three ways to show a run: bars on a terminal, one display in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TextIO

from hookloop.hooks._wording import describe, of, place, remaining
from hookloop.runs.shown import make_safe, print_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.live import Live
    from rich.progress import TaskID

    from hookloop.core.run import Run
    from hookloop.hooks._frame import Frame

REFRESH = 0.1
"""Seconds between two updates of the bars."""


class Display(Protocol):
    """A way to show a run."""

    def say(self, line: str, style: str = "") -> None:
        """Show a line that stays."""

    def start(self, run: Run) -> None:
        """Begin to show the training."""

    def is_due(self) -> bool:
        """Tell whether it is time to show something new."""

    def train(self, run: Run, recent: Mapping[str, float]) -> None:
        """Show how far the training is."""

    def evaluate(self, run: Run, done: int, total: int | None) -> None:
        """Show how far an evaluation is."""

    def stop(self) -> None:
        """Leave the screen as other programs expect it."""


def choose_display(file: TextIO | None) -> type[Lines] | type[Bars] | type[Notebook]:
    """Find the way that fits the place."""
    if file is None and _in_notebook():
        return Notebook
    return Bars if _is_terminal(file or sys.stdout) else Lines


class Lines:
    """Plain lines, for files and pipes."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def say(self, line: str, style: str = "") -> None:
        """Write a line, at once."""
        print_line(self._file or sys.stdout, line)

    def start(self, run: Run) -> None:
        """Lines need no beginning."""

    def is_due(self) -> bool:
        """Lines come when the hook is called, which keeps its interval."""
        return True

    def train(self, run: Run, recent: Mapping[str, float]) -> None:
        """Write where the run stands."""
        self.say(f"{place(run)}  {describe(run, recent)}  eta {remaining(run, recent)}")

    def evaluate(self, run: Run, done: int, total: int | None) -> None:
        """Lines tell the result of an evaluation only."""

    def stop(self) -> None:
        """Lines need no end."""


class Bars:
    """A bar for the run, one for the epoch, one for an evaluation, and the newest numbers."""

    def __init__(self, file: TextIO | None) -> None:
        from rich.console import Console

        self._console = Console(file=file)
        self._live: Live | None = None
        self._next = 0.0

    def say(self, line: str, style: str = "") -> None:
        """Print a line above the bars."""
        if self._live is not None:
            self._live.refresh()  # A window that has become narrower is cleared up first.
        text = make_safe(line)
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def start(self, run: Run) -> None:
        """Open the bars."""
        from rich.live import Live

        from hookloop.hooks._frame import Frame

        self._frame: Frame = Frame(self._console)
        progress = run.progress
        self._run_bar: TaskID = self._frame.add("run", progress.total_iters)
        self._epoch_bar: TaskID = self._frame.add("epoch", progress.epoch_iters)
        self._other: TaskID = self._frame.add("val", None, visible=False)
        self._live = Live(
            self._frame, console=self._console, transient=True, refresh_per_second=1 / REFRESH
        )
        self._live.start()

    def is_due(self) -> bool:
        """Tell whether a change would be visible yet."""
        now = monotonic()
        if now < self._next or self._live is None:
            return False
        self._next = now + REFRESH
        return True

    def train(self, run: Run, recent: Mapping[str, float]) -> None:
        """Move the bars."""
        progress, bars = run.progress, self._frame.bars
        epoch = of(progress.epoch + 1, progress.max_epochs)
        bars.update(self._other, visible=False)
        bars.update(self._run_bar, completed=progress.iter, total=progress.total_iters)
        done, total = progress.iter_in_epoch, progress.epoch_iters
        bars.update(self._epoch_bar, completed=done, total=total)
        self._frame.state = f"epoch {epoch}  eta {remaining(run, recent)}"
        self._frame.numbers = make_safe(describe(run, recent)).split("  ")

    def evaluate(self, run: Run, done: int, total: int | None) -> None:
        """Move the bar of an evaluation."""
        # The last iterations may have come too soon after a refresh to be shown.
        bars = self._frame.bars
        bars.update(self._run_bar, completed=run.progress.iter)
        bars.update(self._epoch_bar, completed=run.progress.iter_in_epoch)
        bars.update(
            self._other,
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
    """One output that is updated in place, so that a long run does not flood the page."""

    LINES = 25
    REFRESH = 0.5

    def __init__(self, file: TextIO | None) -> None:
        self._lines: deque[str] = deque(maxlen=self.LINES)
        self._status = ""
        self._next = 0.0
        self._handle: object = None

    def say(self, line: str, style: str = "") -> None:
        """Add a line; the oldest goes when there are many."""
        self._lines.append(line)
        self._update()

    def start(self, run: Run) -> None:
        """The first line opens the output."""

    def is_due(self) -> bool:
        """Tell whether it is time for an update."""
        now = monotonic()
        if now < self._next:
            return False
        self._next = now + self.REFRESH
        return True

    def train(self, run: Run, recent: Mapping[str, float]) -> None:
        """Show a bar and the newest numbers."""
        total = run.progress.total_iters
        filled = round(30 * run.progress.iter / total) if total else 0
        bar = f"[{'#' * filled}{'.' * (30 - filled)}]  " if total else ""
        self._status = f"{bar}{place(run)}  {describe(run, recent)}  eta {remaining(run, recent)}"
        self._update()

    def evaluate(self, run: Run, done: int, total: int | None) -> None:
        """Show how far an evaluation is."""
        self._status = f"{run.phase}: {of(done, total)}"
        self._update()

    def stop(self) -> None:
        """Leave what was said."""
        self._status = ""
        self._update()

    def _update(self) -> None:
        text = "\n".join([*self._lines, self._status]).rstrip()
        content = {"text/plain": text}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(
                content, raw=True, display_id=True
            )
        else:
            self._handle.update(content, raw=True)  # type: ignore[attr-defined]


def _is_terminal(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:  # It is closed.
        return False


def _in_notebook() -> bool:
    """Tell whether this is a notebook; a shell of IPython is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
