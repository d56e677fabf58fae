"""Show the informative messages of hookloop during a run.

Nothing is set when this module is imported, and `OpenLog` removes everything that it adds.
"""

from __future__ import annotations

import logging
import sys
from io import TextIOWrapper
from pathlib import Path

from hookloop.runs.files import open_to_append, write_text
from hookloop.runs.handlers import TemporaryHandler, has_own_handlers
from hookloop.runs.run_log import LOGGER, current_logs, show_on_stderr
from hookloop.runs.shown import print_line


class LogFile(logging.FileHandler):
    """Appends to a file; a link is rejected.

    Args:
        file: The path of the file.
        mode: ``"w"`` to empty it first.
        delay: Whether to open it only at the first message.
    """

    def __init__(self, file: Path, mode: str = "a", *, delay: bool = False) -> None:
        super().__init__(file, mode, encoding="utf-8", delay=delay)
        self._has_failed = False

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        if self.mode == "w":  # Replaced by a new file: opening with "w" would follow a link.
            write_text(path, "")
        return TextIOWrapper(open_to_append(path), encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a full disk once, in one line, instead of with a traceback for each message."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._has_failed:
            self._has_failed = True
            reason = error.strerror or error
            show_on_stderr(f"warning: '{self.baseFilename}' cannot be written: {reason}.")


class OpenLog(TemporaryHandler):
    """Sends informative messages to ``run.log`` and to the screen, until it is closed.

    Warnings are shown on the standard error by the run itself.

    Args:
        screen: Whether to print them if the program has not set up logging itself.
        logger: The logger whose messages are shown: hookloop's, or that of a part.
    """

    def __init__(self, *, screen: bool = True, logger: str = LOGGER) -> None:
        super().__init__()
        self._prints = screen and not has_own_handlers(logging.getLogger(logger))
        self._logs = current_logs()
        for log in self._logs:
            log.guests.append(self)
        self.attach(logger, logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, if it belongs to this run."""
        is_ours = self._logs == current_logs()
        if self._prints and is_ours and record.levelno < logging.WARNING:
            # Looked up each time, because a progress display may replace sys.stdout.
            print_line(sys.stdout, self.format(record))

    def close(self) -> None:
        """Restore logging as it was before."""
        self.detach()
        super().close()
