"""Writing a checkpoint file, with its size and checksum known at the end.

torch writes a local file by itself, which spares a copy of everything in Python, and the checksum
is made of what the system has in memory while the disk is busy with it.
"""

from __future__ import annotations

import io
import os
import threading
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

import torch

from hookloop.checkpoint.storage import put

CHUNK = 1 << 22

Sums = Callable[[], tuple[int, int]]
"""Returns size and CRC-32, when they are known."""


def write_checkpoint(checkpoint: dict[str, object], file: BinaryIO) -> Sums:
    """Write a checkpoint into an open file."""
    if not isinstance(file, io.FileIO):
        counting = _Counting(file)
        counting.save(checkpoint)
        return lambda: (counting.size, counting.crc32)
    try:
        torch.save(checkpoint, os.fspath(cast("str", file.name)))
    except RuntimeError:
        _provoke(file)
        raise
    return _Summing(file).result


def _provoke(file: io.FileIO) -> None:
    """Let the system say what is wrong; torch puts a riddle in place of 'No space left'."""
    file.seek(0, os.SEEK_END)
    put(file, bytes(1 << 20))


class _Summing:
    """Sums a file up in a thread."""

    def __init__(self, file: io.FileIO) -> None:
        # Another descriptor of the same file, which may be renamed meanwhile.
        self._file = open(os.fspath(cast("str", file.name)), "rb", buffering=0)  # noqa: SIM115
        self._size = 0
        self._crc32 = 0
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._sum, name="hookloop-sum", daemon=True)
        self._thread.start()

    def result(self) -> tuple[int, int]:
        """Wait for it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._size, self._crc32

    def _sum(self) -> None:
        chunk = memoryview(bytearray(CHUNK))
        try:
            with self._file:
                while count := self._file.readinto(chunk):
                    self._crc32 = zlib.crc32(chunk[:count], self._crc32)
                    self._size += count
        except OSError as error:
            self._error = error


class _Counting:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None
        self.size = 0
        self.crc32 = 0

    def save(self, checkpoint: dict[str, object]) -> None:
        """Write a checkpoint to it."""
        try:
            torch.save(checkpoint, cast("BinaryIO", self))
        except RuntimeError:
            if self._error is not None:  # As above: the riddle's answer.
                raise self._error  # noqa: B904 - its own cause says all
            raise

    def write(self, data: bytes) -> int:
        """Pass data on."""
        try:
            put(self._file, data)
        except Exception as error:
            self._error = error
            raise
        self.size += len(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        return len(data)

    def flush(self) -> None:
        """Pass it on."""
        self._file.flush()
