"""`Multi`: several writers as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hookloop.writers.base import Report, Writer, warn_of_failure
from hookloop.writers.records import Record


class Multi(Writer):
    """Sends every record to several writers; one that fails is dropped, the others continue.

    Args:
        writers: The writers, in the order in which they get each record.
        report: Called with each writer that fails.
    """

    name = "multi"

    def __init__(self, *writers: Writer, report: Report = warn_of_failure) -> None:
        self.writers = list(writers)
        self._report = report

    def write(self, records: Iterable[Record]) -> None:
        """Send records to each writer."""
        listed = list(records)  # An iterator would be empty after the first writer.
        self._each(lambda writer: writer.write(listed))

    def flush(self) -> None:
        """Flush each writer."""
        self._each(lambda writer: writer.flush())

    def close(self) -> None:
        """Close each writer."""
        self._each(lambda writer: writer.close())

    def _each(self, action: Callable[[Writer], None]) -> None:
        for writer in list(self.writers):  # A copy: one that fails is removed.
            try:
                action(writer)
            except Exception as error:  # noqa: BLE001 - reported, and the writer is dropped
                self._report(writer, error)
                self.writers.remove(writer)
