"""`WriteTo`: the run's numbers to a writer of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks._writing import Writing
from hookloop.writers.base import Writer

if TYPE_CHECKING:
    from hookloop.core.run import Run


class WriteTo(Writing):
    """Send the run's numbers, and whatever hooks emit, to a writer of your own.

    Whatever is put into the metric store is written once, at the next write, with the iteration in
    which it was put: a mean of what came since the last time, of 100 values at most. Writing takes
    place in a thread. A writer that fails is reported once and switched off; the run continues.

    Args:
        writer: A writer, which is flushed when the run ends and stays open; or a function that
            makes one from the run, which is closed then.
        every: How often to write in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all when not given.

    Example:
        >>> from hookloop.writers import JsonLines
        >>> hook = WriteTo(lambda run: JsonLines(run.dir / "losses.jsonl"), metrics=["*/loss"])
        >>> hook.reads
        ('*/loss',)
    """

    def __init__(
        self,
        writer: Writer | Callable[[Run], Writer],
        every: Every | int | str = 50,
        metrics: Sequence[str] | None = None,
    ) -> None:
        super().__init__(every, metrics)
        self._given = writer
        self._leaves_open = isinstance(writer, Writer)

    def open(self, run: Run) -> Writer:
        return self._given if isinstance(self._given, Writer) else self._given(run)
