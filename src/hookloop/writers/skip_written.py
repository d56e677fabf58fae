"""`SkipWritten`: leaves out records that the backend already holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hookloop.writers.base import Writer
from hookloop.writers.records import Config, Graph, Record, Scalars


class SkipWritten(Writer):
    """Passes on only what is newer than what the backend held at the start.

    A resumed run repeats the iterations after its checkpoint, and computes the same numbers again.
    No service deletes a number, so it must not get one twice.

    Args:
        writer: The writer that gets the rest.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.name = writer.name
        self._held = dict(writer.held())

    def write(self, records: Iterable[Record]) -> None:
        """Write the new ones among the records."""
        kept = [self._select_new(record) for record in records]
        self.writer.write([record for record in kept if record is not None])

    def flush(self) -> None:
        """Flush the writer."""
        self.writer.flush()

    def close(self) -> None:
        """Close the writer."""
        self.writer.close()

    def _select_new(self, record: Record) -> Record | None:
        if isinstance(record, Config | Graph):  # These have no step.
            return record
        if not isinstance(record, Scalars):
            return record if self._is_new(record.name, record.step or 0) else None
        values = {n: v for n, v in record.values.items() if self._is_new(n, record.step)}
        return replace(record, values=values) if values else None

    def _is_new(self, name: str, step: int) -> bool:
        # The empty name stands for every name whose own step is not known.
        held = self._held.get(self.writer.held_name(name))
        return step > (self._held.get("", -1) if held is None else held)
