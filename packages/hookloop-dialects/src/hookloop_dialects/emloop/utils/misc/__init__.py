"""``emloop.utils.misc``: contexts that silence or release something."""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager, redirect_stdout
from io import StringIO


class DisabledPrint(AbstractContextManager[None]):
    """Drop what is printed within the block."""

    def __enter__(self) -> None:
        self._redirect = redirect_stdout(StringIO())
        self._redirect.__enter__()

    def __exit__(self, *error: object) -> None:
        self._redirect.__exit__(None, None, None)


class DisabledLogger(AbstractContextManager[None]):
    """Drop what is logged within the block.

    Args:
        name: The logger; None for the root logger.
    """

    def __init__(self, name: str | None = None) -> None:
        self._logger = logging.getLogger(name)

    def __enter__(self) -> None:
        self._before = self._logger.disabled
        self._logger.disabled = True

    def __exit__(self, *error: object) -> None:
        self._logger.disabled = self._before


class ReleasedSemaphore(AbstractContextManager[None]):
    """Release a semaphore within the block.

    Args:
        semaphore: The semaphore.
    """

    def __init__(self, semaphore: threading.Semaphore) -> None:
        self._semaphore = semaphore

    def __enter__(self) -> None:
        self._semaphore.release()

    def __exit__(self, *error: object) -> None:
        self._semaphore.acquire()
