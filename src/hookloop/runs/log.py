"""Where the informative messages of hookloop are printed while a run lasts.

Nothing is set when this module is imported; what `OpenLog` adds it takes away again.
"""

from __future__ import annotations

import logging
import sys
from io import TextIOWrapper
from pathlib import Path

from hookloop.runs.files import open_to_append, write_text
from hookloop.runs.handlers import PassingHandler, has_own_handlers
from hookloop.runs.run_log import LOGGER, current_logs, show_on_stderr
from hookloop.runs.shown import print_line


class LogFile(logging.FileHandler):
    """Appends to a file; a link in its place is rejected.

    Args:
        file: Its path.
        mode: ``"w"`` to begin it again.
        delay: Whether to open it at the first message only.
    """

    def __init__(self, file: Path, mode: str = "a", *, delay: bool = False) -> None:
        super().__init__(file, mode, encoding="utf-8", delay=delay)
        self._has_failed = False

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        if self.mode == "w":
            write_text(path, "")
        return TextIOWrapper(open_to_append(path), encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a disk that is full in a line, once, rather than with all that was going on."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._has_failed:
            self._has_failed = True
            reason = error.strerror or error
            show_on_stderr(f"warning: '{self.baseFilename}' cannot be written: {reason}.")


class OpenLog(PassingHandler):
    """Lets informative messages pass until it is closed: to ``run.log``, and to the screen.

    Warnings are shown on the standard error by the run itself.

    Args:
        screen: Whether to print them where the program has not said what logging should do.
        logger: Whose messages: all of hookloop's, or those of a part.
    """

    def __init__(self, *, screen: bool = True, logger: str = LOGGER) -> None:
        super().__init__()
        self._prints = screen and not has_own_handlers(logging.getLogger(logger))
        self._logs = current_logs()
        for log in self._logs:
            log.guests.append(self)
        self.attach(logger, logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, if it is of this run."""
        is_ours = self._logs == current_logs()
        if self._prints and is_ours and record.levelno < logging.WARNING:
            # The standard output of the moment, which a progress display may have replaced.
            print_line(sys.stdout, self.format(record))

    def close(self) -> None:
        """Leave logging as it was."""
        self.detach()
        super().close()
