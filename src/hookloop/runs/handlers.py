"""Handlers that are added to a logger for a while and leave no trace."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator

_CHANGING = threading.Lock()


class PassingHandler(logging.Handler):
    """A handler that lets messages of a level through to it, from `attach` to `detach`.

    Several may be there at once, of runs that overlap; the logger's own level is back when the last
    one is gone, in whatever order they go.
    """

    _logger: logging.Logger | None = None
    _wanted: int = logging.NOTSET
    _before: int = logging.NOTSET

    def attach(self, name: str, level: int) -> None:
        """Take the messages of a logger, from a level upwards."""
        with _CHANGING:
            logger = logging.getLogger(name)
            others = passing_handlers(logger)
            self._logger, self._wanted = logger, level
            self._before = others[0]._before if others else logger.level
            logger.addHandler(self)
            self._set_level(logger)

    def detach(self) -> None:
        """Take them no longer."""
        with _CHANGING:
            if self._logger is not None:
                self._logger.removeHandler(self)
                self._set_level(self._logger)
                self._logger = None

    def _set_level(self, logger: logging.Logger) -> None:
        logger.setLevel(self._before)
        wanted = min((one._wanted for one in passing_handlers(logger)), default=None)
        if wanted is not None and logger.getEffectiveLevel() > wanted:
            logger.setLevel(wanted)


def passing_handlers(logger: logging.Logger) -> list[PassingHandler]:
    """Return the handlers of ours that a logger has, the oldest first."""
    return [handler for handler in logger.handlers if isinstance(handler, PassingHandler)]


def has_own_handlers(logger: logging.Logger) -> bool:
    """Return whether the program has decided itself where a logger's messages go."""
    return any(not isinstance(handler, PassingHandler) for handler in _handlers_of(logger))


def is_on_screen(record: logging.LogRecord) -> bool:
    """Return whether the program itself shows a message on the screen."""
    return any(
        record.levelno >= handler.level and _writes_to_screen(handler)
        for handler in _handlers_of(logging.getLogger(record.name))
        if not isinstance(handler, PassingHandler)
    )


def _handlers_of(logger: logging.Logger) -> Iterator[logging.Handler]:
    """Yield the handlers that get a logger's messages."""
    place: logging.Logger | None = logger
    while place is not None:
        yield from place.handlers
        place = place.parent if place.propagate else None


def _writes_to_screen(handler: logging.Handler) -> bool:
    """Return whether a handler writes to the standard output or error, or to a terminal."""
    console = getattr(handler, "console", None)  # That of rich.
    stream = getattr(handler, "stream", None) or getattr(console, "file", None)
    if stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        return stream is not None
    try:
        return stream.isatty() or stream.fileno() in (1, 2)  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):  # It is not a file, or it is closed.
        return False
