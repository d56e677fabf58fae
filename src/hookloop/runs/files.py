"""Write into a directory that somebody else may have filled, without following links in it.

A directory that was copied, unpacked or shared can hold symbolic links instead of files. Appending
to such a file, or emptying it, would change the target of the link. Files are therefore written
beside their final path and renamed, which replaces a link, or opened in a way that rejects one.
Only links inside the directory matter: the directory itself may be reached through links.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from hookloop.errors import LinkError

# Windows has neither flag; there, only `reject_link` finds a link, before the file is opened.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # Opening a FIFO would wait for a reader.
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing: after a crash, the file is the old one or the new one."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Do the same as `write_text` with bytes; unless ``durable``, a machine crash may lose them."""
    with naming(path), drafted(path) as draft:
        # O_EXCL fails if somebody has put a file or a link there since.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
        with os.fdopen(os.open(draft, flags, 0o666), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())


def overwrite(path: Path, data: bytes) -> bool:
    """Write a file into the blocks that it already has, for a full disk; return whether it fits.

    A crash in the middle damages it, so this is a last resort.
    """
    number = open_own(path, os.O_RDWR)
    try:
        room = getattr(os.fstat(number), "st_blocks", 0) * 512  # POSIX counts in blocks of 512.
        if os.fstat(number).st_nlink > 1 or len(data) > room:
            return False
        os.write(number, data)
        os.ftruncate(number, len(data))
        os.fsync(number)
    finally:
        os.close(number)
    return True


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error say which file could not be written: a full disk is reported without one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Yield a path to write to; its file replaces ``path`` if nothing fails."""
    # Never the same twice: other threads, processes and machines may be writing the same file.
    draft = path.with_name(f".{path.stem}.{secrets.token_hex(8)}.tmp{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    # Also for an interrupt, so that no draft is left behind.
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append(path: Path, text: str) -> None:
    """Append text to a file, which is created if it is missing."""
    with open_to_append(path) as file:
        file.write(text.encode())


def open_to_append(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file to append to it; it is created if it is missing.

    A file with a second name, as in a backup made of hard links, is copied first.

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
    """Open a file of a run without following a link; it is created if it is missing."""
    reject_link(path)
    try:
        number = os.open(path, flags | os.O_CREAT | _NO_FOLLOW | _NO_WAIT | _BINARY, 0o666)
    except OSError as error:
        reject_link(path)  # A link that was put there meanwhile explains the failure better.
        raise error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise LinkError(f"'{path}' is not a file, so nothing is written to it: delete it.")
    return number


def reject_link(path: Path) -> None:
    """Reject a path that exists and is not a regular file."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # It is missing, or opening it will show the reason.
        return
    if stat.S_ISLNK(mode):
        raise LinkError(
            f"'{path}' is a symbolic link, which is not followed: its target would be changed. "
            "Delete the link, or replace it by the file."
        )
    if not stat.S_ISREG(mode):
        raise LinkError(f"'{path}' is not a file, so nothing is written to it: delete it.")


def make_folder(path: Path, home: Path) -> Path:
    """Make a directory inside ``home`` and return it; links on the way are rejected."""
    reject_links(path, home)
    path.mkdir(parents=True, exist_ok=True)
    return path


def reject_links(path: Path, home: Path) -> None:
    """Reject a directory inside ``home`` if a link is on the way to it.

    A path outside of ``home`` was chosen by the user, and is not checked.
    """
    if not path.is_relative_to(home):
        return
    directory = home
    for part in path.relative_to(home).parts:
        directory /= part
        if directory.is_symlink():
            raise LinkError(
                f"'{directory}' is a symbolic link, so nothing is written into it. Delete the "
                "link, or name the directory that it leads to."
            )
