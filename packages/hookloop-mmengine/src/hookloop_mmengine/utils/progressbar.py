"""``mmengine.utils.ProgressBar``: the progress of some work, on one line."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TextIO


class ProgressBar:
    """Show the number of finished tasks on a line of the terminal.

    Args:
        task_num: The number of tasks; 0 if it is not known.
        bar_width: The width of the bar in characters.
        start: Whether the clock starts now.
        file: The stream to write to.
    """

    def __init__(
        self,
        task_num: int = 0,
        bar_width: int = 50,
        start: bool = True,
        file: TextIO | None = None,
    ) -> None:
        self.task_num = task_num
        self.bar_width = bar_width
        self.completed = 0
        self.file = file or sys.stdout
        if start:
            self.start()

    def start(self) -> None:
        """Start the clock."""
        self._since = perf_counter()
        self._show()

    def update(self, num_tasks: int = 1) -> None:
        """Count some tasks as finished."""
        self.completed += num_tasks
        self._show()

    def _show(self) -> None:
        elapsed = perf_counter() - self._since
        text = f"completed: {self.completed}, elapsed: {elapsed:.0f}s"
        if self.task_num > 0:
            done = int(self.bar_width * min(self.completed / self.task_num, 1))
            bar = ">" * done + " " * (self.bar_width - done)
            text = f"[{bar}] {self.completed}/{self.task_num}, elapsed: {elapsed:.0f}s"
        # A carriage return, so that the line is overwritten in place.
        self.file.write(f"\r{text}")
        self.file.flush()
