"""Read files that anybody may have made: never wait, and never read more than a limit."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MOST = 16_000_000
"""The most bytes of a file that is read as a whole."""

# Without O_NONBLOCK, opening a pipe would wait for a writer. Windows has none of the flags but one.
FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


@contextmanager
def opened_to_read(path: Path, directory: int | None = None) -> Iterator[BinaryIO]:
    """Open a file; a link is rejected, and a pipe, socket or device, which might block forever.

    Args:
        path: Where it is.
        directory: The descriptor of an open directory in which it is.

    Raises:
        OSError: If it cannot be opened, or is not a file.
    """
    with _file_of(_open(path, directory), path.name) as file:
        yield file


def _open(path: Path | str, directory: int | None = None) -> int:
    try:
        return os.open(path, os.O_RDONLY | FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:  # A link could lead to any file of the reader.
            name = os.path.basename(path)
            raise OSError(
                error.errno, f"'{name}' is a symbolic link, which is not followed"
            ) from error
        raise


def read_bytes(path: Path | str, most: int) -> bytes:
    """Return a small file, or its first ``most`` bytes; what is not a plain file is rejected.

    Without a file object, which takes longer to make than a small file takes to read: a list of
    runs reads thousands.

    Raises:
        OSError: If it cannot be read, or is not a file.
    """
    number = _open(path)
    try:
        size = _size_of(number, path)
        return _read(number, 0, min(size + 1, most), most)
    finally:
        os.close(number)


def read_end(path: Path | str, most: int) -> bytes:
    """Return the last ``most`` bytes of a file; what is not a plain file is rejected.

    Raises:
        OSError: If it cannot be read, or is not a file.
    """
    number = _open(path)
    try:
        return _read(number, max(0, _size_of(number, path) - most), most, most)
    finally:
        os.close(number)


def _size_of(number: int, path: Path | str) -> int:
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"'{os.path.basename(path)}' is not a file")
    return found.st_size


def _read(number: int, begin: int, wanted: int, most: int) -> bytes:
    """Read from a place on, until the end or ``most`` bytes; it expects ``wanted`` bytes."""
    if begin:
        os.lseek(number, begin, os.SEEK_SET)
    data = b""
    while len(data) < most and (part := os.read(number, min(wanted, most - len(data)))):
        data = data + part if data else part
        if len(part) < wanted:  # The end, of a plain file.
            break
    return data


def _file_of(number: int, name: str) -> BinaryIO:
    """Return the file of an open descriptor; what is not a plain file is closed and rejected."""
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"'{name}' is not a file")
    return os.fdopen(number, "rb")


def read_json(path: Path | str, most: int = MOST) -> object:
    """Read a file of JSON.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not JSON, too deep or too large.
    """
    return parse_file(read_bytes(path, most + 1), path, most)


def parse_file(data: bytes, path: Path | str, most: int = MOST) -> object:
    """Parse what was read of a file of JSON, one byte more than ``most`` at most.

    Raises:
        ValueError: If it is not JSON, too deep or too large.
    """
    name = os.path.basename(path)
    if len(data) > most:
        raise ValueError(f"'{name}' is larger than {most} bytes")
    try:
        return parse_json(data)
    except ValueError as error:
        raise ValueError(f"'{name}' is not JSON that can be read: {error}") from error


def read_most(file: BinaryIO, most: int) -> bytes:
    """Return a file, or its first ``most`` bytes.

    Room is made for what is there: making it for megabytes takes longer than reading a small file.
    """
    wanted = min(os.fstat(file.fileno()).st_size + 1, most)
    data = file.read(wanted)
    # One byte more than there was: it has grown meanwhile.
    return data if len(data) < wanted else data + file.read(most - wanted)


def parse_json(data: bytes) -> object:
    """Parse JSON; every error is a ValueError."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
