"""Writing into a directory that somebody else may have filled: no link in it is followed.

A directory that was copied, unpacked or shared can hold symbolic links in the place of files. To
append to such a file, or to empty it, would change whatever it leads to. Files are therefore
written beside their place and renamed, which replaces a link, or opened in a way that rejects one.
Only what lies inside the directory is looked at: the directory itself may be reached through links.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from hookloop.errors import LinkError

# Windows has neither; there a link is looked for before the file is opened.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # A FIFO would wait for somebody to read it.
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing: a crash leaves the old file, never half of the new one."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Do the same with bytes; unless ``durable``, a crash of the machine may lose them."""
    with drafted(path) as draft:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
        with os.fdopen(os.open(draft, flags, 0o666), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())


def overwrite(path: Path, data: bytes) -> bool:
    """Write a file in the room that it has already, for a disk without any; return whether it fits.

    A crash in the middle damages it, so this is a last resort.
    """
    number = open_own(path, os.O_RDWR)
    try:
        room = getattr(os.fstat(number), "st_blocks", 0) * 512
        if os.fstat(number).st_nlink > 1 or len(data) > room:
            return False
        os.write(number, data)
        os.ftruncate(number, len(data))
        os.fsync(number)
    finally:
        os.close(number)
    return True


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Give a path to write to, whose file takes the place of ``path`` if nothing fails."""
    draft = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        draft.unlink(missing_ok=True)
        yield draft
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append(path: Path, text: str) -> None:
    """Add text to the end of a file, which is made when it is missing."""
    with open_to_append(path) as file:
        file.write(text.encode())


def open_to_append(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file at its end; made when it is missing.

    A file that has a second name, as a backup made of hard links has, is first copied.

    Raises:
        LinkError: If it is a link, or not a file at all.
    """
    number = open_own(path, os.O_RDWR | os.O_APPEND)
    if os.fstat(number).st_nlink > 1:
        os.close(number)
        with drafted(path) as draft:
            shutil.copyfile(path, draft)
        number = open_own(path, os.O_RDWR | os.O_APPEND)
    return os.fdopen(number, "ab", buffering)


def has_left(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file is no longer at its path: it was deleted or moved."""
    if os.fstat(file.fileno()).st_nlink == 0:
        return True
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    return False


def open_own(path: Path, flags: int) -> int:
    """Open a file of a run without following a link; made when it is missing."""
    reject_link(path)
    try:
        number = os.open(path, flags | os.O_CREAT | _NO_FOLLOW | _NO_WAIT | _BINARY, 0o666)
    except OSError as error:
        reject_link(path)
        raise error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise LinkError(f"'{path}' is not a file, so nothing is written to it: delete it.")
    return number


def reject_link(path: Path) -> None:
    """Reject a path that is there and is not a file of its own."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # It is missing, or opening it gives the reason.
        return
    if stat.S_ISLNK(mode):
        raise LinkError(
            f"'{path}' is a symbolic link, which is not followed: whatever it leads to would be "
            "changed. Delete the link, or move the file into its place."
        )
    if not stat.S_ISREG(mode):
        raise LinkError(f"'{path}' is not a file, so nothing is written to it: delete it.")


def make_folder(path: Path, home: Path) -> Path:
    """Make a directory inside another one, ``home``, and return it; no link leads out of that."""
    reject_links(path, home)
    path.mkdir(parents=True, exist_ok=True)
    return path


def reject_links(path: Path, home: Path) -> None:
    """Reject a directory inside another one, ``home``, if a link is on the way to it.

    A path outside of ``home`` is one that the user has named, and left alone.
    """
    if not path.is_relative_to(home):
        return
    place = home
    for part in path.relative_to(home).parts:
        place /= part
        if place.is_symlink():
            raise LinkError(
                f"'{place}' is a symbolic link, so nothing is written into it. Delete the link, "
                "or name the directory that it leads to."
            )
