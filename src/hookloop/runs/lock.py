"""A lock, so that only one process at a time trains in a run's directory."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path

from hookloop.errors import RunExistsError
from hookloop.runs.files import open_own
from hookloop.runs.life import LONGEST, Holder

LOCK = ".lock"

_log = logging.getLogger("hookloop")

_HELD: list[RunLock] = []
"""The locks of this process. POSIX knows one holder per process, and releases the lock as soon as
the process closes the file anywhere, even if another part of it holds the lock."""


def is_held_here(path: Path) -> bool:
    """Return whether this process holds a lock."""
    return any(lock.holds(path) for lock in _HELD)


class RunLock:
    """Held from the start of a training to its end; the system releases it if the process dies.

    It belongs to the process and not to the workers that it forks, which may outlive it by seconds.

    Args:
        directory: The run's directory, which has to exist.
        name: The file of the lock; by default that of a training.
    """

    def __init__(self, directory: Path, name: str = LOCK) -> None:
        self._path = directory / name
        self._file: int | None = None
        self._process = 0

    def take(self) -> None:
        """Take the lock; reject it if another process has it; OSError if nothing can be written."""
        if self._file is not None:
            return
        if is_held_here(self._path):  # Opening and closing it would release it.
            raise self._taken("this process itself")
        while True:
            file = open_own(self._path, os.O_RDWR)
            try:
                self._lock(file)
            except BaseException:
                os.close(file)
                raise
            # The holder may have deleted the file between our opening and locking it.
            if self._is_there(file) and os.fstat(file).st_nlink == 1:
                break
            if self._is_there(file):  # A copy of the directory made of hard links shares it.
                self._path.unlink()
            os.close(file)  # Otherwise the process that held it until now has deleted it.
        with suppress(OSError):  # On a full disk the holder stays unnamed; the lock holds anyway.
            os.ftruncate(file, 0)
            os.write(file, Holder.this(os.fstat(file).st_ino).text.encode())
        self._file, self._process = file, os.getpid()
        _HELD.append(self)

    def give_back(self) -> None:
        """Release the lock, if it was taken. In a forked child, the parent keeps it."""
        if self._file is not None:
            file, self._file = self._file, None
            _HELD.remove(self)
            try:
                # Deleted before it is closed: once released, it may belong to another process.
                if self._is_there(file) and self._process == os.getpid():
                    self._path.unlink(missing_ok=True)
            except OSError:  # The directory is read-only by now; the file alone locks nothing.
                _log.info("'%s' could not be deleted.", self._path)
            finally:
                os.close(file)

    def is_lost(self) -> bool:
        """Return whether the lock was taken and its file is gone, as in an emptied directory."""
        return self._file is not None and not self._is_there(self._file)

    def holds(self, path: Path) -> bool:
        """Return whether this object holds the lock at a path, in this process."""
        if self._file is None or self._process != os.getpid():
            return False
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(path))
        except OSError:
            return False

    def _lock(self, file: int) -> None:
        try:
            import fcntl
        except ImportError:  # On Windows, nothing is locked.
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # The file system has no locks.
            holder = Holder.read(os.read(file, LONGEST)) or "another process"
            raise self._taken(str(holder)) from error

    def _taken(self, holder: str) -> RunExistsError:
        return RunExistsError(
            f"'{self._path.parent}' is being trained in by {holder}: two at once would write "
            "over each other's files. Wait for its end, or end it, or choose another directory."
        )

    def _is_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except (FileNotFoundError, NotADirectoryError):
            return False
