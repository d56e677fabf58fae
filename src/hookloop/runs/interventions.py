"""The record of a run: ``interventions.jsonl``, what happened to it from outside, line by line.

A training follows from its seed, its config and its data, but for what somebody did to it: a start
with another limit, a setting that was changed, a validation that was asked for, a rewind. Each of
these is a line, and so is what the order of each pass was drawn from. Lines are only ever added: a
resume from an earlier checkpoint begins with a line of its own.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from hookloop.errors import LinkError
from hookloop.runs.files import open_to_append
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import records
from hookloop.runs.reader import read_time
from hookloop.runs.records import to_json

_log = logging.getLogger("hookloop")

MOST_WAITING = 1000
"""Lines that are kept in memory while the file cannot be written."""

LARGEST_STATE = 1 << 16
"""Bytes of the state of a generator; more is damage."""


class Interventions:
    """Writes the record of a run; without a file, as on all ranks but the first, nothing.

    A file that cannot be written is reported once, and ends no training: the lines wait for it.
    """

    def __init__(self) -> None:
        self._file: Path | None = None
        self._waiting: deque[str] = deque(maxlen=MOST_WAITING)
        self._has_failed = False
        self._last_words: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        """Whether lines are written."""
        return self._file is not None

    def open(self, run: RunDir) -> None:
        """Write to the directory of a run from now on."""
        self._file = run.interventions_file

    def before_close(self, add: Callable[[], None]) -> None:
        """Let somebody add what is not written yet, before the record is closed."""
        self._last_words.append(add)

    def close(self) -> None:
        """Write no more."""
        for add in self._last_words:
            add()
        self._last_words = []
        self._write()
        self._file = None
        self._waiting.clear()

    def add(self, what: str, iteration: int, **values: object) -> None:
        """Add a line.

        Args:
            what: The kind of line.
            iteration: The iterations completed.
            values: What else it says, in a form that JSON holds.
        """
        if self._file is None:
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"what": what, "iter": iteration, "time": time, **values}
        self._waiting.append(to_json(line) + "\n")
        self._write()

    def _write(self) -> None:
        if self._file is None or not self._waiting:
            return
        try:
            append_lines(self._file, "".join(self._waiting))
        except FileNotFoundError:  # The directory was deleted; it may come back.
            return
        except (OSError, LinkError) as error:
            if not self._has_failed:
                _log.warning(
                    "'%s' cannot be written (%s), so nothing records what happens to this run "
                    "from outside. The training continues; the lines are kept until it can be.",
                    self._file,
                    error,
                )
            self._has_failed = True
        else:
            self._waiting.clear()


def append_lines(path: Path, lines: str) -> None:
    """Append whole lines to a file; one that a crash has torn is ended first."""
    with open_to_append(path) as file:
        number, is_torn = file.fileno(), False
        if os.fstat(number).st_size:  # Opened to append, so that reading moves nothing.
            os.lseek(number, -1, os.SEEK_END)
            is_torn = os.read(number, 1) != b"\n"
        file.write((b"\n" if is_torn else b"") + lines.encode())


def read_interventions(run: RunDir) -> list[dict[str, object]]:
    """Return the lines of the record of a run, without those that are damaged; empty without one.

    Raises:
        OSError: If the file cannot be read.
    """
    return list(_lines(run))


def last_start(run: RunDir) -> Mapping[str, object] | None:
    """Return the line of the last start, or None if there is none, or none that can be read."""
    found: Mapping[str, object] | None = None
    try:
        for line in _lines(run):
            found = line if line["what"] == "start" else found
    except OSError:
        return None
    return found


def other_ways(run: RunDir) -> Iterator[tuple[int, datetime]]:
    """Yield from where a run has made other iterations than before, and when."""
    for line in read_interventions(run):
        time = read_time(line.get("time"))
        if line["what"] in ("rewind", "change") and time is not None:
            yield cast("int", line["iter"]), time


def _lines(run: RunDir) -> Iterator[dict[str, object]]:
    for line in records(run.interventions_file, is_lenient=True):
        iteration = line.get("iter")
        if isinstance(line.get("what"), str) and type(iteration) is int and iteration >= 0:
            yield line


# --- states of generators -------------------------------------------------------------------------


def packed(state: bytes) -> str:
    """Return the state of a generator as text.

    >>> unpacked(packed(b"abc"))
    b'abc'
    """
    return base64.b64encode(zlib.compress(state, 9)).decode()


def unpacked(text: str) -> bytes:
    """Return what `packed` was given.

    Raises:
        ValueError: If it is something else.
    """
    try:
        inflate = zlib.decompressobj()
        state = inflate.decompress(base64.b64decode(text, validate=True), LARGEST_STATE)
        if not inflate.eof:
            raise zlib.error("it is cut off, or too large")
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"this is not the state of a generator: {text[:80]!r}") from error
    return state
