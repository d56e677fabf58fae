"""`WriteTo`: the numbers of a run in a writer of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hookloop.every import Every
from hookloop.hooks.writing._writing import Writing
from hookloop.writers.base import Writer

if TYPE_CHECKING:
    from hookloop.engine.run import Run


class WriteTo(Writing):
    """Send the numbers of a run, and the records that hooks emit, to a writer of your own.

    Each value in the metric store is written once, at the next write, with the iteration in which
    it was put; several new values are written as their mean, of 100 values at most. Writing happens
    in a thread. A writer that fails is reported once and switched off; the run continues.

    Args:
        writer: A writer, or a function of the run that returns one. When the run ends, a writer
            that you pass is flushed and stays open; one that the function returns or a config
            builds is closed.
        every: Interval in training, in iterations or time.
        metrics: Names or patterns of the numbers to write; all by default.

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
        self._writer_or_factory = writer
        self._leaves_open = isinstance(writer, Writer)

    def open(self, run: Run) -> Writer:
        writer = self._writer_or_factory
        return writer if isinstance(writer, Writer) else writer(run)
