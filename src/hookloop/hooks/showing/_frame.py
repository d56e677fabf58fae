"""The live display of `ShowProgress` in a terminal: bars over the whole width, numbers below.

It is a module of its own because it needs rich, which is imported only when a terminal is there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.console import Group
from rich.control import Control
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.segment import ControlType, Segment
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

NARROW = 64
"""Width in columns below which the state of the run does not fit beside its bar."""

INDENT = "      "


class Frame:
    """The bars and the newest numbers, redrawn in place.

    Args:
        console: Where they are drawn.

    Attributes:
        bars: The bars.
        numbers: Short texts, which fill as many lines as they need.
        state: Text beside the first bar.
    """

    def __init__(self, console: Console) -> None:
        self.numbers: list[str] = []
        self.state = ""
        self.bars = Progress(
            TextColumn("{task.description:>5}", table_column=Column(no_wrap=True)),
            # Only the bar stretches. The other columns keep their width, so nothing jumps.
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[state]}", style="dim", table_column=Column(no_wrap=True)),
            console=console,
            expand=True,
        )
        self._first: TaskID | None = None
        self._widths: list[int] = []

    def add(self, name: str, total: int | None, *, visible: bool = True) -> TaskID:
        """Add a bar."""
        bar = self.bars.add_task(name, total=total, state="", visible=visible)
        self._first = bar if self._first is None else self._first
        return bar

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._clear_wrapped(console.width)
        # Checked at each drawing, because the window can be resized while the run lasts.
        is_narrow = options.max_width < NARROW
        if self._first is not None:
            self.bars.update(self._first, state="" if is_narrow else self.state)
        numbers = [*([self.state] if is_narrow and self.state else []), *self.numbers]
        texts = [Text(line) for line in fill(numbers, options.max_width)]
        # Rendered to lines here, because their widths are needed to clear them after a resize.
        lines = console.render_lines(Group(self.bars, *texts), options, pad=False)
        self._widths = [Segment.get_line_length(line) for line in lines]
        for line in lines:
            yield from line
            yield Segment.line()

    def _clear_wrapped(self, width: int) -> RenderResult:
        """Erase the extra rows that lines of the last drawing take in a window made narrower."""
        # rich moves up by the number of lines it drew. A wrapped line takes more rows than that,
        # and the remaining ones would stay above the new drawing.
        more = sum(-(-drawn // width) - 1 for drawn in self._widths if drawn) if _reflows() else 0
        if more > 0:
            yield Control(*((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)) * more)


def fill(texts: list[str], width: int) -> list[str]:
    """Join texts into lines no longer than the width; a text is never split.

    >>> fill(["loss 0.1", "accuracy 0.9", "lr 0.001"], 30)
    ['      loss 0.1  accuracy 0.9', '      lr 0.001']
    """
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines.append(f"{INDENT}{text}")
    return lines


def _reflows() -> bool:
    """Return whether a narrower window wraps existing lines, as most terminals do."""
    if os.environ.get("TMUX"):  # Checked first: tmux wraps lines, and its TERM is often "screen".
        return True
    # xterm itself, the Linux console, screen and the VT family cut lines off instead.
    kind = os.environ.get("TERM", "")
    return "XTERM_VERSION" not in os.environ and not kind.startswith(("linux", "screen", "vt"))
