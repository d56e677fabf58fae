"""Places that can hold checkpoints: a local directory, or anything that fsspec reaches."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from hookloop.errors import CheckpointError, nearest

Write = Callable[[BinaryIO], None]

PROTOCOLS = frozenset(
    {
        *("file", "local", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"),
        *("oci", "oss", "hf", "hdfs", "webhdfs", "webdav", "sftp", "ssh", "ftp", "smb"),
        *("http", "https", "box", "gdrive", "dbfs", "wandb"),
    }
)
"""What a place may begin with: file systems that hold files and nothing else.

fsspec knows others that compute what they show, or chain one system over another with ``::``; some
of its versions run code that is written in such a URL.
"""


class Storage(Protocol):
    """Files by name; a file that can be seen is whole."""

    url: str

    def write(self, name: str, write: Write) -> None:
        """Make a file, or leave no trace of it: an older one of its name stays as it was."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""

    def copy(self, name: str, other: str) -> None:
        """Make a file available under another name, or leave no trace of that."""

    def remove(self, name: str) -> None:
        """Delete a file; one that is gone already is no fault."""

    def names(self) -> list[str]:
        """List the files."""

    def size(self, name: str) -> int:
        """Tell the size of a file in bytes."""

    def free_bytes(self) -> int | None:
        """Tell how much more fits, if the place can tell."""

    def clean(self) -> list[str]:
        """Delete what a killed process left half written; return the names."""


def open_storage(place: str | Path) -> Storage:
    """Open a directory, or a URL such as ``s3://bucket/runs``.

    >>> open_storage("checkpoints").url
    'checkpoints'
    """
    return RemoteStorage(str(place)) if is_url(place) else LocalStorage(Path(place))


def is_url(place: str | Path) -> bool:
    """Tell whether a place is reached through fsspec."""
    return "://" in str(place)


def is_file_name(name: str) -> bool:
    """Return whether a text names a file of a store, and nothing beside, above or hidden in it.

    >>> is_file_name("epoch_1.pth"), is_file_name("../epoch_1.pth"), is_file_name(".lock")
    (True, False, False)
    """
    return bool(name) and name[0] != "." and not set(name) & set("/\\\0")


def put(file: BinaryIO, data: bytes | bytearray | memoryview) -> None:
    """Write all of the data: an unbuffered file may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


class LocalStorage:
    """A local directory. What was written survives a crash of the machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = str(directory)

    def write(self, name: str, write: Write) -> None:
        """Write beside the final place, then move there; both are flushed to the disk."""

        def write_path(path: Path) -> None:
            with path.open("wb", buffering=0) as file:
                write(file)

        self.write_path(name, write_path)

    def write_path(self, name: str, write: Callable[[Path], None]) -> None:
        """Do the same with somebody who makes a file of a path."""
        self.directory.mkdir(parents=True, exist_ok=True)
        staged = self._staged(name)
        try:
            # Not made in advance: ext4 writes a file that was emptied at once when it is closed,
            # which takes two to three times as long.
            staged.unlink(missing_ok=True)
            write(staged)
            _sync(staged)
            os.replace(staged, self.directory / name)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise
        _sync(self.directory)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self.directory / name).open("rb")

    def copy(self, name: str, other: str) -> None:
        """Link the file, which takes no space; copy it where links are not to be had."""
        source, staged = self.directory / name, self._staged(other)
        if name == other:
            return
        staged.unlink(missing_ok=True)
        try:
            os.link(source, staged)
        except FileNotFoundError:
            raise
        except OSError:
            with source.open("rb") as file:
                self.write(other, lambda target: shutil.copyfileobj(file, target, 1 << 22))
            return
        os.replace(staged, self.directory / other)
        staged.unlink(missing_ok=True)  # Where both are one file already, renaming does nothing.
        _sync(self.directory)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.directory / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """List the files that are whole."""
        if not self.directory.is_dir():
            return []
        return sorted(p.name for p in self.directory.iterdir() if p.is_file() and p.name[0] != ".")

    def size(self, name: str) -> int:
        """Tell the size of a file."""
        return (self.directory / name).stat().st_size

    def free_bytes(self) -> int | None:
        """Tell how much more fits on the disk."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.directory).free

    def frees(self, name: str) -> bool:
        """Return whether deleting a file makes room: not if it is there under two names."""
        return (self.directory / name).stat().st_nlink == 1

    def clean(self) -> list[str]:
        """Delete what a killed process left half written."""
        hidden = sorted(self.directory.glob(".*")) if self.directory.is_dir() else []
        left = [path for path in hidden if {".staged", ".tmp"} & set(path.suffixes)]
        for path in left:
            path.unlink(missing_ok=True)
        return [path.name for path in left]

    def _staged(self, name: str) -> Path:
        return self.directory / f".{name}.staged"


NOT_FOR_DIRECTORIES = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES)
"""What systems and network drives answer that cannot flush a directory."""


def _sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    is_directory = path.is_dir()
    try:
        # Windows flushes only what may be written to, and opens no directory.
        descriptor = os.open(path, os.O_RDONLY if is_directory else os.O_RDWR)
    except PermissionError:
        if is_directory:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not is_directory or error.errno not in NOT_FOR_DIRECTORIES:
            raise
    finally:
        os.close(descriptor)


def _check_protocol(url: str) -> None:
    """Reject a URL that is not a plain store, before fsspec looks at it."""
    from fsspec.registry import registry

    protocol = url.partition("://")[0]
    if "::" in url:
        raise CheckpointError(
            f"'{url}' cannot be opened: chained URLs, with '::', are not accepted. Name the store "
            "itself."
        )
    # What the program has registered with fsspec by itself is the user's own choice.
    if protocol not in PROTOCOLS and protocol not in registry:
        raise CheckpointError(
            f"'{url}' cannot be opened: '{protocol}' is not among the protocols that are accepted."
            f"{nearest(protocol, PROTOCOLS)} If you trust it, call "
            f"fsspec.get_filesystem_class('{protocol}') first."
        )


class RemoteStorage:
    """A directory of any file system of fsspec, whose files appear when they are complete."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise CheckpointError(
                f"'{url}' needs fsspec: pip install 'hookloop[fsspec]'."
            ) from error
        _check_protocol(url)
        self.url = url.rstrip("/")
        try:
            self._files, self._path = url_to_fs(url)
        except (ImportError, ValueError) as error:  # No such protocol, or its package is missing.
            raise CheckpointError(f"'{url}' cannot be opened: {error}.") from error

    def write(self, name: str, write: Write) -> None:
        """Write a file; in a transaction it appears when it is complete, or not at all."""
        self._files.makedirs(self._path, exist_ok=True)
        with self._files.transaction, self._files.open(self._at(name), "wb") as file:
            write(file)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return cast("BinaryIO", self._files.open(self._at(name), "rb"))

    def copy(self, name: str, other: str) -> None:
        """Copy a file within the store."""
        if name != other:
            self._files.copy(self._at(name), self._at(other))

    def remove(self, name: str) -> None:
        """Delete a file."""
        if self._files.exists(self._at(name)):
            self._files.rm(self._at(name))

    def names(self) -> list[str]:
        """List the files, as they are now and not as they were when last looked at."""
        self._files.invalidate_cache()
        if not self._files.exists(self._path):
            return []
        return sorted(str(p).rsplit("/", 1)[-1] for p in self._files.ls(self._path, detail=False))

    def size(self, name: str) -> int:
        """Tell the size of a file."""
        return int(self._files.size(self._at(name)))

    def free_bytes(self) -> int | None:
        """A store does not tell."""
        return None

    def clean(self) -> list[str]:
        """Nothing: a file that was not completed never appeared."""
        return []

    def _at(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"
