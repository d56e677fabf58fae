"""Where the messages of hookloop go while a run lasts: a file, and a screen if none is set up.

Nothing is set when this module is imported; what `OpenLog` adds it takes away again.
"""

from __future__ import annotations

import logging
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from hookloop.runs.files import open_to_append, write_text
from hookloop.secret import redact

LOGGER = "hookloop"


class _Screen(logging.StreamHandler[TextIO]):
    """Writes to the standard output of the moment, which a progress display may have replaced."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


class _Redacting(logging.Formatter):
    """Puts references in the place of secrets, also in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _redact_message(record: logging.LogRecord) -> bool:
    """Do the same for handlers of the program itself."""
    text = record.getMessage()
    if (shown := redact(text)) != text:
        record.msg, record.args = shown, ()
    if record.exc_info:
        text = logging.Formatter().formatException(record.exc_info)
        if (shown := redact(text)) != text:
            record.exc_text = shown  # A formatter takes it instead of making its own.
    return True


class LogFile(logging.FileHandler):
    """Appends to a file; a link in its place is rejected.

    Args:
        file: Its path.
        mode: ``"w"`` to begin it again.
        delay: Whether to open it at the first message only.
    """

    def __init__(self, file: Path, mode: str = "a", *, delay: bool = False) -> None:
        super().__init__(file, mode, encoding="utf-8", delay=delay)

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        if self.mode == "w":
            write_text(path, "")
        return TextIOWrapper(open_to_append(path), encoding="utf-8")


class OpenLog:
    """Lets messages be seen until it is closed.

    Args:
        file: Where to append them, if anywhere.
        screen: Whether to print them where the program has not said what logging should do.
        logger: Whose messages: all of hookloop's, or those of a part.
    """

    def __init__(
        self, file: Path | None = None, *, screen: bool = True, logger: str = LOGGER
    ) -> None:
        self._logger = logging.getLogger(logger)
        self._handlers: list[logging.Handler] = []
        self._logger.addFilter(_redact_message)
        self._level: int | None = None
        if screen and not self._logger.hasHandlers():
            self._add(_Screen(), "%(message)s")
        if file is not None:
            self._add(LogFile(file), "%(asctime)s  %(message)s")
        if self._logger.getEffectiveLevel() > logging.INFO:
            self._level = self._logger.level  # Only who changed it changes it back.
            self._logger.setLevel(logging.INFO)

    def close(self) -> None:
        """Leave logging as it was."""
        self._logger.removeFilter(_redact_message)
        for handler in self._handlers:
            self._logger.removeHandler(handler)
            handler.close()
        if self._level is not None:
            self._logger.setLevel(self._level)

    def _add(self, handler: logging.Handler, form: str) -> None:
        handler.setFormatter(_Redacting(form, "%Y-%m-%d %H:%M:%S"))
        self._logger.addHandler(handler)
        self._handlers.append(handler)
