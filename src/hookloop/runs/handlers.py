"""Handlers that are attached to a logger for a while and leave no trace."""

from __future__ import annotations

import logging
import sys
import threading

_CHANGING = threading.Lock()


class TemporaryHandler(logging.Handler):
    """A handler that gets the messages of a level, from `attach` to `detach`.

    Runs may overlap, so several may be attached at once. The logger's own level is restored when
    the last one is detached, in any order.
    """

    _logger: logging.Logger | None = None
    _wanted: int = logging.NOTSET
    _before: int = logging.NOTSET

    def attach(self, name: str, level: int) -> None:
        """Get the messages of a logger, from a level upwards."""
        with _CHANGING:
            logger = logging.getLogger(name)
            self._logger, self._wanted = logger, level
            self._before = own_level(logger)
            for handler in filter(is_implicit, logging.root.handlers):
                handler.addFilter(self._was_shown)
            logger.addHandler(self)
            self._set_level(logger)

    def detach(self) -> None:
        """Stop getting them."""
        with _CHANGING:
            if self._logger is not None:
                self._logger.removeHandler(self)
                self._set_level(self._logger)
                self._logger = None
                for handler in logging.root.handlers:
                    handler.removeFilter(self._was_shown)

    def _was_shown(self, record: logging.LogRecord) -> bool:
        """Return whether Python's own handler shows a message without the levels that we set."""
        logger = logging.getLogger(record.name)
        while not own_level(logger) and logger.parent is not None:
            logger = logger.parent
        return record.levelno >= own_level(logger)

    def _set_level(self, logger: logging.Logger) -> None:
        logger.setLevel(self._before)
        wanted = min((handler._wanted for handler in temporary_handlers(logger)), default=None)
        if wanted is not None and logger.getEffectiveLevel() > wanted:
            logger.setLevel(wanted)


def temporary_handlers(logger: logging.Logger) -> list[TemporaryHandler]:
    """Return our own handlers of a logger, the oldest first."""
    return [handler for handler in logger.handlers if isinstance(handler, TemporaryHandler)]


def own_level(logger: logging.Logger) -> int:
    """Return the level that a logger has without our handlers."""
    ours = temporary_handlers(logger)
    # The first one saw the logger's own level; later ones see the level that we set.
    return ours[0]._before if ours else logger.level


def has_own_handlers(logger: logging.Logger) -> bool:
    """Return whether the program itself has added handlers for a logger's messages."""
    return any(
        not isinstance(handler, TemporaryHandler) and not is_implicit(handler)
        for handler in handlers_of(logger)
    )


def is_implicit(handler: logging.Handler) -> bool:
    """Return whether Python added a handler: the first ``logging.info`` adds one to the root."""
    # A program that calls logging.basicConfig chooses a level, a format or a file.
    return (
        type(handler) is logging.StreamHandler
        and handler in logging.root.handlers
        and getattr(handler.formatter, "_fmt", None) == logging.BASIC_FORMAT
        and own_level(logging.root) == logging.WARNING
    )


def is_on_screen(record: logging.LogRecord) -> bool:
    """Return whether a handler of the program shows a message on the screen."""
    return any(
        record.levelno >= handler.level and _writes_to_screen(handler)
        for handler in handlers_of(logging.getLogger(record.name))
        if not isinstance(handler, TemporaryHandler)
    )


def handlers_of(logger: logging.Logger) -> list[logging.Handler]:
    """List the handlers that get a logger's messages, its own first."""
    found: list[logging.Handler] = []
    current: logging.Logger | None = logger
    while current is not None:
        found += current.handlers
        current = current.parent if current.propagate else None
    return found


def _writes_to_screen(handler: logging.Handler) -> bool:
    """Return whether a handler writes to the standard output or error, or to a terminal."""
    console = getattr(handler, "console", None)  # The handler of rich has one.
    stream = getattr(handler, "stream", None) or getattr(console, "file", None)
    if stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        return stream is not None
    try:
        return stream.isatty() or stream.fileno() in (1, 2)  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):  # It is not a file, or it is closed.
        return False
