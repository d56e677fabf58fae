"""What a run reports while it lasts: ``run.log`` in its directory, warnings on the standard error.

Messages go through Python's logger ``hookloop``, so that a program may send them where it likes.
Nothing is set when this module is imported; what a `RunLog` sets is taken back when it is closed.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TextIO, TypeVar

from hookloop.runs.files import has_left, open_to_append, reject_link
from hookloop.runs.handlers import PassingHandler, is_on_screen, passing_handlers
from hookloop.runs.shown import print_line, shown
from hookloop.version import VERSION

T = TypeVar("T")

LOGGER = "hookloop"

ELSEWHERE = {"is_elsewhere": True}
"""The ``extra`` of a message that a run's log does not take: it has it already, or should not."""

MOST_WAITING = 1_000_000
"""Bytes of messages that are kept while they cannot be written."""


class RunLog(PassingHandler):
    """Takes the messages of one run, until it is closed.

    All of them go to the file, with the time. Warnings and errors also go to the standard error,
    unless the program has sent the logger's messages to the screen itself. Python's own warnings,
    which are shown anyhow, are added to the file. Each run of a process has a log of its own.

    Messages wait in memory until `keep` gives the file; a run that keeps nothing has none.

    Attributes:
        guests: Other handlers that end with the run, should their owner not close them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._waiting = b""
        self._is_late = False
        self._outer = outer = CURRENT.get()
        if outer in _open_logs() and outer._path is None:
            # What was reported while the run was prepared belongs to it.
            self._waiting, outer._waiting = outer._waiting, b""
        self.guests: list[PassingHandler] = []
        # A level for all loggers does not mean these warnings; one for this very logger does.
        logger = logging.getLogger(LOGGER)
        self.attach(LOGGER, logger.level or logging.WARNING)
        logger.addFilter(_make_safe)
        _watch_warnings()
        CURRENT.set(self)

    def keep(self, file: Path) -> None:
        """Append the messages to a file, those that waited as well.

        Raises:
            LinkError: If it is a link, or not a file at all.
        """
        reject_link(file)
        self._path = file
        self.note(f"process {os.getpid()} on {socket.gethostname()}, hookloop {VERSION}")

    def emit(self, record: logging.LogRecord) -> None:
        """Take a message, if it is of this run."""
        logs = current_logs()
        if self not in logs or getattr(record, "is_elsewhere", False):
            return
        text = self.format(record)
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
            if logs[0] is self and not is_on_screen(record):
                show_on_stderr(text)
        self._append(text)

    def note(self, text: str) -> None:
        """Write to the file alone."""
        self.acquire()
        try:
            self._append(text)
        finally:
            self.release()

    def close(self) -> None:
        """Leave logging as it was."""
        for handler in (self, *self.guests):
            handler.detach()
        logs = _open_logs()
        if not logs:
            _leave_warnings()
            logging.getLogger(LOGGER).removeFilter(_make_safe)
        if CURRENT.get() is self:
            CURRENT.set(self._outer if self._outer in logs else None)
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _append(self, text: str) -> None:
        """Add a line to the file. What cannot be written waits; that is reported once."""
        line = f"{datetime.now():%Y-%m-%d %H:%M:%S}  {shown(text)}\n"
        self._waiting = (self._waiting + line.encode())[-MOST_WAITING:]
        try:
            if self._path is not None:
                self._write_waiting(self._path)
        except OSError as error:
            if not self._is_late:
                reason = error.strerror or error
                show_on_stderr(f"warning: '{self._path}' cannot be written: {reason}.")
            self._is_late = True
        else:
            self._is_late = False

    def _write_waiting(self, path: Path) -> None:
        if self._file is not None and has_left(self._file, path):
            self._file.close()  # Somebody has deleted or moved it.
            self._file = None
        if self._file is None:
            self._file = open_to_append(path, buffering=0)
        while self._waiting:
            self._waiting = self._waiting[self._file.write(self._waiting) :]


CURRENT: ContextVar[RunLog | None] = ContextVar("hookloop_run_log", default=None)
"""The log of the run for which the current code works. The threads of a run copy its context."""


def current_logs() -> list[RunLog]:
    """Return the log of the current run, or all that are open where the run is not known."""
    logs, current = _open_logs(), CURRENT.get()
    return [current] if current in logs else logs


def logged(items: Iterator[T]) -> Iterator[T]:
    """Let what is reported while an item is made belong to the run that is current now.

    Between two items somebody else's code runs, in which another run may have begun.
    """
    return _logged(CURRENT.get(), items)


def _logged(log: RunLog | None, items: Iterator[T]) -> Iterator[T]:
    while True:
        outer = CURRENT.get()
        CURRENT.set(log)
        try:
            item = next(items)
        except StopIteration:
            return
        finally:
            CURRENT.set(outer)
        yield item


class _Forward(PassingHandler):
    """Hands the messages of another logger to the log of a run, until that is closed."""

    def __init__(self, log: RunLog, name: str) -> None:
        super().__init__()
        self.source = name
        self._log = log
        self.attach(name, logging.getLogger(name).level or logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a message over."""
        self._log.handle(record)


def log_as_well(name: str) -> None:
    """Let the messages of another logger belong to the current run."""
    for log in current_logs():
        forwards = [guest for guest in log.guests if isinstance(guest, _Forward)]
        if all(one.source != name for one in forwards):
            log.guests.append(_Forward(log, name))


def _make_safe(record: logging.LogRecord) -> bool:
    """Make a message safe to show, also for handlers of the program itself."""
    text = record.getMessage()
    if (safe := shown(text)) != text:
        record.msg, record.args = safe, ()
    if record.exc_info:
        text = logging.Formatter().formatException(record.exc_info)
        if (safe := shown(text)) != text:
            record.exc_text = safe  # A formatter takes it instead of making its own.
    return True


def show_on_stderr(text: str) -> None:
    """Print a line on the standard error, if anybody can be reached there."""
    with suppress(OSError):  # There is nowhere left to report that.
        print_line(sys.stderr, text)


def _open_logs() -> list[RunLog]:
    handlers = passing_handlers(logging.getLogger(LOGGER))
    return [handler for handler in handlers if isinstance(handler, RunLog)]


class _ShowAndNote:
    """In the place of `warnings.showwarning`: adds what it shows to the log of the run."""

    def __init__(self) -> None:
        self.before = warnings.showwarning

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        self.before(message, category, filename, lineno, file, line)
        if file is None:
            for log in current_logs():
                log.note(f"warning: {filename}:{lineno}: {category.__name__}: {message}")


def _watch_warnings() -> None:
    if not isinstance(warnings.showwarning, _ShowAndNote):
        warnings.showwarning = _ShowAndNote()


def _leave_warnings() -> None:
    # If somebody has put another function in its place, ours does nothing without a run.
    if isinstance(warnings.showwarning, _ShowAndNote):
        warnings.showwarning = warnings.showwarning.before
