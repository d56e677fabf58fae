"""The messages of a run: ``run.log`` in its directory, and warnings on the standard error.

Messages go through Python's logger ``hookloop``, so that a program can send them elsewhere. Nothing
is set when this module is imported, and closing a `RunLog` undoes everything that it set.
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
from hookloop.runs.handlers import (
    TemporaryHandler,
    handlers_of,
    has_own_handlers,
    is_on_screen,
    temporary_handlers,
)
from hookloop.runs.shown import make_safe, print_line
from hookloop.version import VERSION

T = TypeVar("T")

LOGGER = "hookloop"
ROOT = "root"

ELSEWHERE = {"is_elsewhere": True}
"""The ``extra`` of a message that a run's log skips: it has it already, or should not have it."""

MOST_WAITING = 1_000_000
"""How many bytes of messages are kept while they cannot be written."""


class RunLog(TemporaryHandler):
    """Collects the messages of one run, until it is closed.

    All of them go to the file, with the time. Warnings and errors also go to the standard error,
    unless the program itself shows the logger's messages on the screen. Python's own warnings,
    which are shown anyway, are added to the file. Each run of a process has a log of its own.

    Messages wait in memory until `keep` names the file; a run that keeps nothing has no file.

    Attributes:
        guests: Other handlers that are detached with this one, if their owner does not do it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._waiting = b""
        self._is_late = False
        self._outer = outer = CURRENT.get()
        if outer in _open_logs() and outer._path is None:
            # Messages from the preparation of a run belong to the run.
            self._waiting, outer._waiting = outer._waiting, b""
        self.guests: list[TemporaryHandler] = []
        # The level of the root logger does not hide our warnings; a level of this logger does.
        logger = logging.getLogger(LOGGER)
        self.attach(LOGGER, logger.level or logging.WARNING)
        logger.addFilter(_make_record_safe)
        _watch_warnings()
        CURRENT.set(self)

    def keep(self, file: Path) -> None:
        """Append the messages to a file, including those that waited.

        Raises:
            LinkError: If it is a link, or not a file at all.
        """
        reject_link(file)
        self._path = file
        self.note(f"process {os.getpid()} on {socket.gethostname()}, hookloop {VERSION}")

    def emit(self, record: logging.LogRecord) -> None:
        """Handle a message, if it belongs to this run."""
        logs = current_logs()
        if self not in logs or getattr(record, "is_elsewhere", False):
            return
        text = self.format(record)
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
            # Only one of several logs shows it, so that it is not shown twice.
            if logs[0] is self and not is_on_screen(record):
                show_on_stderr(text)
        self._append(text)

    def note(self, text: str) -> None:
        """Write a text to the file only."""
        self.acquire()
        try:
            self._append(text)
        finally:
            self.release()

    def close(self) -> None:
        """Restore logging as it was before."""
        for handler in (self, *self.guests):
            handler.detach()
        logs = _open_logs()
        if not logs:
            _restore_warnings()
            logging.getLogger(LOGGER).removeFilter(_make_record_safe)
        if CURRENT.get() is self:
            CURRENT.set(self._outer if self._outer in logs else None)
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _append(self, text: str) -> None:
        """Add a line to the file. What cannot be written waits, which is reported once."""
        line = f"{datetime.now():%Y-%m-%d %H:%M:%S}  {make_safe(text)}\n"
        # The newest messages are kept: they show why nothing can be written.
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
            self._file.close()  # Somebody has deleted or moved it: write to a new one.
            self._file = None
        if self._file is None:
            # Unbuffered, so that a killed process loses no message.
            self._file = open_to_append(path, buffering=0)
        while self._waiting:
            self._waiting = self._waiting[self._file.write(self._waiting) :]


CURRENT: ContextVar[RunLog | None] = ContextVar("hookloop_run_log", default=None)
"""The log of the run that the current code belongs to. The threads of a run copy its context."""


def current_logs() -> list[RunLog]:
    """Return the log of the current run, or all open logs if the run is not known."""
    logs, current = _open_logs(), CURRENT.get()
    return [current] if current in logs else logs


def note_in_log(text: str) -> None:
    """Add lines to the log of the current run, or to all open logs if the run is not known."""
    for log in current_logs():
        log.note(text)


def logged(items: Iterator[T]) -> Iterator[T]:
    """Yield items; messages from producing them belong to the run that is current now.

    Between two items the caller's code runs, which may have started another run.
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


class _Forward(TemporaryHandler):
    """Passes the messages of another logger to the log of a run, until that is closed.

    Informative ones are printed, unless the program has set up logging itself.
    """

    def __init__(self, log: RunLog, name: str, *, prints: bool) -> None:
        super().__init__()
        self.source = name
        self._log = log
        logger = logging.getLogger(name)
        is_set_up = has_own_handlers(logger)
        self._prints = prints and not is_set_up
        # A program that has set up the root logger has chosen its level, too.
        chosen = logger.level if logger is not logging.root or is_set_up else 0
        self.attach(name, chosen or logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a message on."""
        if self.source == ROOT and record.name != ROOT:
            self._emit_of_others(record)
            return
        self._log.handle(record)
        if self._prints and record.levelno < logging.WARNING and self._log in current_logs():
            print_line(sys.stdout, self.format(record))

    def _emit_of_others(self, record: logging.LogRecord) -> None:
        """Show a warning of a logger without handlers, as Python does where the root has none."""
        logger = logging.getLogger(record.name)
        if record.levelno >= logging.WARNING and handlers_of(logger)[0] is self:
            show_on_stderr(self.format(record))


def forward_logger(name: str, *, prints: bool = True) -> None:
    """Add the messages of another logger to the log of the current run.

    Args:
        name: The logger; ``root`` is the root.
        prints: Whether informative messages are printed, too.
    """
    for log in current_logs():
        forwards = [guest for guest in log.guests if isinstance(guest, _Forward)]
        if all(forward.source != name for forward in forwards):
            log.guests.append(_Forward(log, name, prints=prints))


def _make_record_safe(record: logging.LogRecord) -> bool:
    """Make a message safe to show, for the handlers of the program as well."""
    text = record.getMessage()
    if (safe := make_safe(text)) != text:
        record.msg, record.args = safe, ()
    if record.exc_info:
        text = logging.Formatter().formatException(record.exc_info)
        if (safe := make_safe(text)) != text:
            record.exc_text = safe  # Formatters use it instead of formatting the exception.
    return True


def show_on_stderr(text: str) -> None:
    """Print a line on the standard error, if that is possible."""
    with suppress(OSError):  # There is nowhere left to report it.
        print_line(sys.stderr, text)


def _open_logs() -> list[RunLog]:
    handlers = temporary_handlers(logging.getLogger(LOGGER))
    return [handler for handler in handlers if isinstance(handler, RunLog)]


class _ShowAndNote:
    """Replaces `warnings.showwarning`: shows a warning and adds it to the log of the run."""

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


def _restore_warnings() -> None:
    # If somebody else has replaced ours meanwhile, it stays below, and does nothing without a run.
    if isinstance(warnings.showwarning, _ShowAndNote):
        warnings.showwarning = warnings.showwarning.before
