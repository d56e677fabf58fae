"""Open and list files inside a run directory, without ever following a link out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hookloop.runs import opened_to_read, read_most

Stamp = tuple[int, int, int]
"""Time of the last change, size and inode of a file: as long as they stay, so does the file."""

MOST_ENTRIES = 100_000
"""How many files of a run are listed."""

_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_HAS_DIR_FD = os.open in os.supports_dir_fd


def stamp_of(path: Path | str) -> Stamp | None:
    """Return the stamp of a plain file; None if it is missing, a link or anything else."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def is_inside(relative: str) -> bool:
    """Return whether a path that a file names stays in its directory.

    >>> is_inside("images/a/00000001.png"), is_inside("../secret"), is_inside("/etc/passwd")
    (True, False, False)
    """
    if not relative or "\0" in relative or "\\" in relative or len(relative) > 1000:
        return False
    path = PurePosixPath(relative)
    return not path.is_absolute() and ".." not in path.parts and bool(path.parts)


@contextmanager
def open_inside(home: Path, relative: str) -> Iterator[BinaryIO]:
    """Open a file of a directory; a link anywhere on the way is rejected.

    Raises:
        OSError: If it cannot be opened, is not a file, or leads elsewhere.
    """
    if not is_inside(relative):
        raise OSError("its path leads out of the run")
    *folders, name = PurePosixPath(relative).parts
    if not _HAS_DIR_FD:  # Windows: links need a privilege there, and are looked for by name.
        for depth in range(1, len(folders) + 1):
            if home.joinpath(*folders[:depth]).is_symlink():
                raise OSError(f"'{folders[depth - 1]}' is a link")
        with opened_to_read(home / relative) as file:
            yield file
        return
    directory = os.open(home, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        with opened_to_read(Path(name), directory) as file:
            yield file
    finally:
        os.close(directory)


def list_inside(home: Path, folder: str, depth: int = 6) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the plain files in a folder of a run and below it, sorted; links are left out."""
    waiting, count = [(folder, 0)], 0
    while waiting:
        current, level = waiting.pop()
        try:
            # The folder itself may be a link; what is below it is checked as it is listed.
            if (home / current).is_symlink():
                continue
            with os.scandir(home / current) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            count += 1
            if count > MOST_ENTRIES:
                return
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(f"{current}/{entry.name}", level + 1)] * (level < depth)
                elif entry.is_file(follow_symlinks=False):
                    yield f"{current}/{entry.name}", entry.stat(follow_symlinks=False)
            except OSError:  # It is gone.
                continue


def read_inside(home: Path, relative: str, most: int) -> bytes:
    """Return the contents of a file of a run.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is larger than ``most`` bytes.
    """
    with open_inside(home, relative) as file:
        data = read_most(file, most + 1)
    if len(data) > most:
        raise ValueError(f"'{PurePosixPath(relative).name}' is larger than {most:,} bytes")
    return data
