"""Reading files that anybody may have made: never waiting, never more than a stated size."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MOST = 16_000_000
"""Bytes of a file that is read as a whole."""

TAIL = 65_536
"""Bytes at the end of a file of records in which the last one is looked for."""


@contextmanager
def opened_to_read(path: Path) -> Iterator[BinaryIO]:
    """Open a file; a pipe, a socket or a device, which might never answer, is rejected.

    Raises:
        OSError: If it cannot be opened, or is not a file.
    """
    # Without the flag, to open a pipe would wait for somebody who writes.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    number = os.open(path, os.O_RDONLY | flags)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"'{path.name}' is not a file")
    with os.fdopen(number, "rb") as file:
        yield file


def read_json(path: Path, most: int = MOST) -> object:
    """Read a file of JSON.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not JSON, too deep or too large.
    """
    with opened_to_read(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"'{path.name}' is larger than {most} bytes")
    try:
        return parse_json(data)
    except ValueError as error:
        raise ValueError(f"'{path.name}' is not JSON that can be read: {error}") from error


def parse_json(data: bytes) -> object:
    """Parse JSON; whatever is wrong with it is a ValueError."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def last_record(path: Path) -> dict[str, object]:
    """Return the last whole line of a file of records, without reading all of it; {} if none is."""
    with opened_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - TAIL))
        data = file.read(TAIL)
    lines = data.split(b"\n")[:-1]  # A last line without its end is being written just now.
    for line in reversed(lines):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            return record
    return {}
