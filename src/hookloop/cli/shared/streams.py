"""Standard streams that never fail: a training must not end because nobody reads its output."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from hookloop.runs.shown import GONE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def keep_streams() -> None:
    """Make output that cannot be written disappear, instead of ending the process."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # Closed, ``>&-``. Else the next file to be opened would get its number.
            os.open(os.devnull, os.O_RDWR)
    if os.name != "nt":  # A console of Windows takes text through an interface of its own.
        sys.stdout = _forgiving(sys.stdout, 1)
        sys.stderr = _forgiving(sys.stderr, 2)


def report_lost_output() -> None:
    """Report lost output, unless it was lost because its reader went away."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Forgiving):
        # What is still buffered has not failed yet.
        sys.stdout.flush()
        if raw.problem is not None and raw.problem.errno not in GONE:
            sys.stderr.write(f"error: the output could not be written: {raw.problem.strerror}\n")


class _Forgiving(io.FileIO):
    """A file whose ``write`` never fails; it keeps the first error."""

    problem: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError as error:
            self.problem = self.problem or error
            return memoryview(data).nbytes  # As if all was written: otherwise it is tried again.


def _forgiving(stream: TextIO | None, number: int) -> TextIO:
    if stream is not None:
        # Otherwise text that the old stream holds would come out after that of the new one.
        with suppress(OSError, ValueError):
            stream.flush()
    return io.TextIOWrapper(
        # Not closed with the object: the number would be free for the next file that is opened.
        io.BufferedWriter(_Forgiving(number, "w", closefd=False)),
        encoding=getattr(stream, "encoding", None) or "utf-8",
        errors=getattr(stream, "errors", None) or "backslashreplace",
        line_buffering=getattr(stream, "line_buffering", True),
        write_through=getattr(stream, "write_through", False),
    )
