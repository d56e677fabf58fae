"""``mmengine.logging``: the logger, and a function that prints through it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Self

from hookloop.dialects import LogFile, note_in_log
from hookloop_mmengine.dist import is_main_process
from hookloop_mmengine.utils.manager import ManagerMixin

FORMAT = "%(asctime)s - mmengine - %(levelname)s - %(message)s"
TIME = "%m/%d %H:%M:%S"


class _NoteInRunLog(logging.Handler):
    """Adds messages to the ``run.log`` of the run in which they are logged."""

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message."""
        note_in_log(self.format(record))


class MMLogger(ManagerMixin, logging.Logger):
    """A logger that writes to the terminal and, with ``log_file``, to a file.

    Of several processes, all but the first write errors to the terminal only.

    Args:
        name: The name by which `get_instance` finds this logger.
        logger_name: The name of the logger in the sense of Python's logging.
        log_file: A file to write to as well.
        log_level: The lowest level that is written.
        file_mode: How the file is opened.
    """

    def __init__(
        self,
        name: str,
        logger_name: str = "mmengine",
        log_file: str | Path | None = None,
        log_level: int | str = "INFO",
        file_mode: str = "a",
    ) -> None:
        ManagerMixin.__init__(self, name)
        logging.Logger.__init__(self, logger_name)
        self.setLevel(log_level)
        self.log_file = Path(log_file) if log_file is not None else None
        # Handlers of its own: it is not part of the tree of Python's loggers.
        # To the standard output, as MMEngine does; Python's default is the standard error.
        self.addHandler(logging.StreamHandler(sys.stdout))
        if not is_main_process():
            self.handlers[0].setLevel(logging.ERROR)
        elif self.log_file is None:
            self.addHandler(_NoteInRunLog())
        else:
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
            # Delayed, so that a runner that logs nothing leaves no empty file behind.
            self.addHandler(LogFile(self.log_file, file_mode, delay=True))
        for handler in self.handlers:
            if not isinstance(handler, _NoteInRunLog):  # It has a format of its own.
                handler.setFormatter(logging.Formatter(FORMAT, TIME))

    def setLevel(self, level: int | str) -> None:
        """Set the lowest level that is written, at once."""
        super().setLevel(level)
        # Python clears what it remembers about levels only of the loggers in its own tree.
        self.__dict__.get("_cache", {}).clear()

    @classmethod
    def get_current_instance(cls) -> Self:
        """Return the newest logger; the first one is made if there is none."""
        if not cls._instance_dict:
            cls.get_instance("mmengine")
        return super().get_current_instance()

    def close(self) -> None:
        """Close the file; the next message opens it again."""
        for handler in self.handlers:
            if isinstance(handler, logging.FileHandler):
                handler.close()


def print_log(
    msg: object, logger: logging.Logger | str | None = None, level: int = logging.INFO
) -> None:
    """Log a message.

    Args:
        msg: The message.
        logger: A logger, the name of one, ``current``, ``silent``, or None for plain print.
        level: The level of the message.
    """
    if logger is None:
        sys.stdout.write(f"{msg}\n")
    elif isinstance(logger, logging.Logger):
        logger.log(level, msg)
    elif not isinstance(logger, str):
        raise TypeError(
            "`logger` should be a logging.Logger, a name, 'silent', 'current' or None, but got "
            f"{type(logger)}"
        )
    elif logger == "current":
        MMLogger.get_current_instance().log(level, msg)
    elif logger != "silent":
        if not MMLogger.check_instance_created(logger):
            raise ValueError(f"MMLogger: {logger} has not been created yet.")
        MMLogger.get_instance(logger).log(level, msg)
