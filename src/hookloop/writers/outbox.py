"""`Outbox`: takes records from hooks and passes them to all writers of a run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hookloop.writers.base import Writer
from hookloop.writers.records import Record

_log = logging.getLogger("hookloop")

MAX_EARLY = 256
"""How many records wait for the first writer; a run without one must not collect them forever."""


class Outbox:
    """Passes records on to every open writer.

    Records that come while a run is being set up, before any writer is open, wait for the writers.

    >>> outbox = Outbox()
    >>> outbox.is_empty
    True
    """

    def __init__(self) -> None:
        self._writers: list[Writer] = []
        self._finishers: list[Callable[[], None]] = []
        self._early: list[Record] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is no writer and no record waits."""
        return not (self._writers or self._early)

    def put(self, record: Record) -> None:
        """Send a record to every open writer."""
        for writer in self._writers:
            writer.write([record])
        if not self._writers and len(self._early) < MAX_EARLY:
            self._early.append(record)

    def open(self, writer: Writer, end: Callable[[], None] | None = None) -> None:
        """Add a writer, and send it the records that waited.

        Args:
            writer: The writer.
            end: Called by `finish`, after the last hook of the run: writes what is left and closes
                the writer.
        """
        # They are kept: the other writers of the run open later, and need them too.
        writer.write(self._early)
        self._writers.append(writer)
        if end is not None:
            self._finishers.append(end)

    def finish(self) -> None:
        """Call the ``end`` of each writer; one that fails is reported."""
        # Each is called once, even if this is called again.
        ends, self._finishers = self._finishers, []
        for end in ends:
            try:
                end()
            except Exception as error:  # noqa: BLE001 - reported, and the other writers still end
                _log.warning("A writer failed at the end: %s: %s", type(error).__name__, error)

    def close(self, writer: Writer) -> None:
        """Remove a writer."""
        self._writers = [other for other in self._writers if other is not writer]
        # A later training or test of this run must not get them again.
        if not self._writers:
            self._early = []
