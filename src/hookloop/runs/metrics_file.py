"""Read ``metrics.jsonl``: an object of JSON in each line, the last of which may be half written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hookloop.runs.reading import opened_to_read, parse_json, read_end
from hookloop.runs.records import to_number

LONGEST_LINE = 1_000_000
"""Bytes of a record that are read; a longer one is damage."""

STAMPS = ("iter", "epoch", "phase", "span", "time")
"""Entries of a record that are not metrics."""

SHORT_TAIL, TAIL = 4_096, 65_536
"""How many bytes at the end of a file are searched for the last record, and for a long one."""


def records(path: Path, *, is_lenient: bool) -> Iterator[dict[str, object]]:
    """Yield the records of a file in order, NaN and infinities as floats; none if it is missing.

    Args:
        path: The file. A last line without its newline is still being written, and is left out.
        is_lenient: Whether damaged lines are left out, too.

    Raises:
        OSError: If the file cannot be read.
        ValueError: At a damaged line, unless ``is_lenient``.
    """
    try:
        with opened_to_read(path) as file:
            while line := file.readline(LONGEST_LINE):
                is_whole = line.endswith(b"\n")
                record = _parse(line) if is_whole else None
                if record is not None:
                    yield {name: to_number(value) for name, value in record.items()}
                elif not is_lenient and (is_whole or len(line) == LONGEST_LINE) and line.strip():
                    raise ValueError(
                        f"'{path.name}' has a line that is not a record: {line[:80]!r}"
                    )
    except FileNotFoundError:
        return


def last_record(path: Path) -> dict[str, object]:
    """Return the last complete record of a file, without reading all of it; {} if there is none.

    Raises:
        OSError: If the file cannot be read.
    """
    for most in (SHORT_TAIL, TAIL):
        lines = read_end(path, most).split(b"\n")[:-1]
        for line in reversed(lines):
            record = _parse(line)
            if record is not None:
                return record
    return {}


def _parse(line: bytes) -> dict[str, object] | None:
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
