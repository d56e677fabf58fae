"""Where hooks hand in records, whoever writes them."""

from __future__ import annotations

from hookloop.writers.base import Writer
from hookloop.writers.records import Record

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

    def open(self, writer: Writer) -> None:
        """Let a writer have what comes from now on, and what came before any was open."""
        writer.write(self._early)
        self._writers.append(writer)

    def close(self, writer: Writer) -> None:
        """Take a writer out."""
        self._writers = [other for other in self._writers if other is not writer]
        if not self._writers:
            self._early = []
