"""A writer that leaves out what its backend holds already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hookloop.writers.base import Writer
from hookloop.writers.records import Config, Graph, Record, Scalars


class Once(Writer):
    """Passes on what is newer than what the backend held when this was made.

    A resumed run makes the iterations between its checkpoint and its end again, and with them the
    same numbers. No service takes a number back, so it must not get one twice.

    Args:
        writer: Who writes.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.name = writer.name
        self._held = dict(writer.held())

    def write(self, records: Iterable[Record]) -> None:
        """Write what is new among the records."""
        self.writer.write([new for record in records if (new := self._new(record)) is not None])

    def flush(self) -> None:
        """Flush the writer."""
        self.writer.flush()

    def close(self) -> None:
        """Close the writer."""
        self.writer.close()

    def _new(self, record: Record) -> Record | None:
        if isinstance(record, Config | Graph):
            return record
        if not isinstance(record, Scalars):
            return record if self._is_new(record.name, record.step or 0) else None
        values = {n: v for n, v in record.values.items() if self._is_new(n, record.step)}
        return replace(record, values=values) if values else None

    def _is_new(self, name: str, step: int) -> bool:
        held = self._held.get(self.writer.held_name(name))
        return step > (self._held.get("", -1) if held is None else held)
