"""Where hooks hand in records, whoever writes them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hookloop.writers.base import Writer
from hookloop.writers.records import Record

_log = logging.getLogger("hookloop")

EARLY = 256
"""How many records wait for the first writer; a run without any must not gather them for ever."""


class Outbox:
    """Passes records on to every open writer.

    What comes before a writer is open (while a run is being set up) waits for those that open next.

    >>> outbox = Outbox()
    >>> outbox.is_empty
    True
    """

    def __init__(self) -> None:
        self._writers: list[Writer] = []
        self._ends: list[Callable[[], None]] = []
        self._early: list[Record] = []

    @property
    def is_empty(self) -> bool:
        """Whether nobody writes and nothing waits."""
        return not (self._writers or self._early)

    def put(self, record: Record) -> None:
        """Hand a record in."""
        for writer in self._writers:
            writer.write([record])
        if not self._writers and len(self._early) < EARLY:
            self._early.append(record)

    def open(self, writer: Writer, end: Callable[[], None] | None = None) -> None:
        """Let a writer have what comes from now on, and what came before any was open.

        Args:
            writer: The writer.
            end: Called by `finish`, when the last hook of the run has acted: it writes what is
                left, and closes the writer.
        """
        writer.write(self._early)
        self._writers.append(writer)
        if end is not None:
            self._ends.append(end)

    def finish(self) -> None:
        """Let each writer write what is left; one that fails is reported."""
        ends, self._ends = self._ends, []
        for end in ends:
            try:
                end()
            except Exception as error:  # noqa: BLE001 - reported; the run itself is over
                _log.warning("A writer failed at the end: %s: %s", type(error).__name__, error)

    def close(self, writer: Writer) -> None:
        """Take a writer out."""
        self._writers = [other for other in self._writers if other is not writer]
        if not self._writers:
            self._early = []
