"""Storage for checkpoints: a local directory, or any file system that fsspec reaches."""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from hookloop.errors import CheckpointError, nearest
from hookloop.runs.checkpoint_names import MANIFEST
from hookloop.runs.identity import is_same_place
from hookloop.secret import without_credentials

Write = Callable[[BinaryIO], None]

PROTOCOLS = frozenset(
    {
        *("file", "local", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"),
        *("oci", "oss", "hf", "hdfs", "webhdfs", "webdav", "sftp", "ssh", "ftp", "smb"),
        *("http", "https", "box", "gdrive", "dbfs", "wandb"),
    }
)
"""Protocols that a URL may have: file systems that hold files and nothing else.

fsspec has others that compute their contents, or chain one system over another with ``::``. Some
versions of fsspec run code that such a URL contains.
"""


METADATA = ".metadata"
"""torch's description of the shards in such a directory."""

REPLACED = ".replaced"
"""Ending of a directory's hidden name while a new one takes its place."""


_LEFT = re.compile(r"\..+(\.staged|\.([0-9]+|[0-9a-f]{16})\.tmp(\.[^.]+)?)", re.DOTALL)
"""Hidden names under which files are written until they are whole; see `drafted`."""


class Storage(Protocol):
    """Files by name; a file that is listed is whole. A local one may be a checkpoint directory."""

    url: str

    def write(self, name: str, write: Write) -> None:
        """Write a file, or leave no trace: on failure an older file of this name stays."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""

    def copy(self, name: str, new_name: str) -> None:
        """Make a file available under another name, or leave no trace."""

    def remove(self, name: str) -> None:
        """Delete a file; it is not an error if it is already gone."""

    def names(self) -> list[str]:
        """List the files."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    def free_bytes(self) -> int | None:
        """Return the free space in bytes, or None if it is unknown."""

    def clean(self) -> list[str]:
        """Delete what a killed process left half written; return the names."""


def open_storage(location: str | Path) -> Storage:
    """Open a directory, or a URL such as ``s3://bucket/runs``.

    >>> open_storage("checkpoints").url
    'checkpoints'
    """
    return RemoteStorage(str(location)) if is_url(location) else LocalStorage(Path(location))


def is_url(location: str | Path) -> bool:
    """Return whether a location is a URL, which is reached through fsspec."""
    return "://" in str(location)


def is_same_location(own: str, written: str) -> bool:
    """Return whether a location found in a file is one that the user named."""
    if is_url(own) or is_url(written):
        own, written = (without_credentials(url).rstrip("/") for url in (own, written))
        return own == written
    return is_same_place(written, own)


def is_file_name(name: str) -> bool:
    """Return whether a text is the name of a visible file, and not a path.

    >>> is_file_name("epoch_1.pth"), is_file_name("../epoch_1.pth"), is_file_name(".lock")
    (True, False, False)
    """
    return bool(name) and name[0] != "." and not set(name) & set("/\\\0")


def is_checkpoint_directory(path: Path) -> bool:
    """Return whether a path is a directory with a checkpoint, as far as its names tell."""
    # Not a link: what it leads to may be anywhere.
    return not path.is_symlink() and (path / MANIFEST).is_file() and (path / METADATA).is_file()


def write_all(file: BinaryIO, data: bytes | bytearray | memoryview) -> None:
    """Write all of the data, however many calls that takes."""
    rest = memoryview(data)
    # An unbuffered file may accept only a part of what it is given.
    while rest:
        rest = rest[file.write(rest) :]


class LocalStorage:
    """A local directory. A file that was written survives a crash of the machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = str(directory)

    def write(self, name: str, write: Write) -> None:
        """Write a hidden file, then rename it; both steps are flushed to the disk."""

        def write_path(path: Path) -> None:
            with path.open("wb", buffering=0) as file:
                write(file)

        self.write_path(name, write_path)

    def write_path(self, name: str, write: Callable[[Path], None]) -> None:
        """Do the same with a function that writes to a path instead of an open file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        staged = self._staged(name)
        try:
            # An old file is deleted instead of truncated: ext4 flushes a truncated file at once
            # when it is closed, which takes two to three times as long.
            staged.unlink(missing_ok=True)
            write(staged)
            # The contents must reach the disk before the name does: after a crash of the machine
            # the name could otherwise lead to an empty file.
            sync_to_disk(staged)
            os.replace(staged, self.directory / name)
        except BaseException:
            staged.unlink(missing_ok=True)
            raise
        # The rename itself is durable only once the directory is flushed.
        sync_to_disk(self.directory)

    def create(self, name: str, data: bytes) -> bool:
        """Write a small file unless there is one; of two processes that do so, one succeeds."""
        self.directory.mkdir(parents=True, exist_ok=True)
        staged = self.directory / f".{name}.{uuid.uuid4().hex}.staged"
        try:
            staged.write_bytes(data)
            sync_to_disk(staged)
            # Unlike a rename, a link does not replace a file.
            os.link(staged, self.directory / name)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            try:
                with (self.directory / name).open("xb") as file:
                    file.write(data)
            except FileExistsError:
                return False
        finally:
            staged.unlink(missing_ok=True)
        sync_to_disk(self.directory)
        return True

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self.directory / name).open("rb")

    def copy(self, name: str, new_name: str) -> None:
        """Link the file, which takes no space; copy it where links are not supported."""
        source, staged = self.directory / name, self._staged(new_name)
        if name == new_name:
            return
        _remove(staged)
        if is_checkpoint_directory(source):
            _copy_directory(source, staged)
            put_in_place(staged, self.directory / new_name)
            return
        try:
            os.link(source, staged)
        except FileNotFoundError:
            raise
        except OSError:
            with source.open("rb") as file:
                self.write(new_name, lambda target: shutil.copyfileobj(file, target, 1 << 22))
            return
        # Linked under a hidden name first, because os.link does not replace an existing file.
        os.replace(staged, self.directory / new_name)
        staged.unlink(missing_ok=True)  # If both are already the same file, rename does nothing.
        sync_to_disk(self.directory)

    def remove(self, name: str) -> None:
        """Delete a file, or a checkpoint that is a directory."""
        _remove(self.directory / name)

    def names(self) -> list[str]:
        """List the files that are whole."""
        if not self.directory.is_dir():
            return []
        visible = [path for path in self.directory.iterdir() if path.name[0] != "."]
        return sorted(p.name for p in visible if p.is_file() or is_checkpoint_directory(p))

    def size(self, name: str) -> int:
        """Return the size of a file, or of all files of a directory but their list."""
        path = self.directory / name
        if not path.is_dir():
            return path.stat().st_size
        return sum(one.stat().st_size for one in path.iterdir() if one.name != MANIFEST)

    def free_bytes(self) -> int | None:
        """Return the free space on the disk."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.directory).free

    def frees(self, name: str) -> bool:
        """Return whether deleting a file frees space: not if it has a second name."""
        path = self.directory / name
        files = path.iterdir() if path.is_dir() else [path]
        return any(file.stat().st_nlink == 1 for file in files)

    def clean(self) -> list[str]:
        """Delete what a killed process left half written."""
        hidden = sorted(self.directory.glob(".*")) if self.directory.is_dir() else []
        for path in hidden:
            if path.suffix == REPLACED:
                _undo_replacement(path)
        left = [path for path in hidden if _LEFT.fullmatch(path.name)]
        for path in left:
            _remove(path)
        return [path.name for path in left]

    def _staged(self, name: str) -> Path:
        return self.directory / f".{name}.staged"


def _copy_directory(source: Path, target: Path) -> None:
    """Link the files of a checkpoint into a new directory; copy them where links fail."""
    target.mkdir()
    for path in source.iterdir():
        if path.is_symlink() or not path.is_file():
            raise CheckpointError(f"'{path}' is not a plain file.")
        try:
            os.link(path, target / path.name)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(path, target / path.name)
            sync_to_disk(target / path.name)
    sync_to_disk(target)


def _remove(path: Path) -> None:
    """Delete a file, or a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        # Out of sight first: half deleted, it must not look like a checkpoint.
        if path.name[0] != ".":
            path = path.rename(path.with_name(f".{path.name}.deleted.staged"))
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _undo_replacement(aside: Path) -> None:
    """Give a directory its name back, unless the new one got it."""
    name = aside.name.removeprefix(".").removesuffix(REPLACED)
    new = aside.parent / name
    if aside.is_symlink() or not aside.is_dir():  # Not made by `put_in_place`.
        return
    if is_checkpoint_directory(new):
        _remove(aside)
    elif is_checkpoint_directory(aside) and not os.path.lexists(new):
        os.rename(aside, new)


def put_in_place(staged: Path, path: Path) -> None:
    """Give a directory that is complete its name; an older one of that name makes way.

    A rename cannot replace a directory, so the old one is renamed first. If the process dies in
    between, `LocalStorage.clean` gives the old one its name back.
    """
    aside = path.with_name(f".{path.name}{REPLACED}")
    if path.exists():
        if not is_checkpoint_directory(path):
            raise CheckpointError(
                f"'{path}' is not a checkpoint, so none is written in its place: move it, or give "
                "the checkpoints another directory."
            )
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(path, aside)
    os.rename(staged, path)
    sync_to_disk(path.parent)
    shutil.rmtree(aside, ignore_errors=True)


NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EMLINK, errno.ENOSYS)
"""Errors of file systems that have no hard links."""

NOT_FOR_DIRECTORIES = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES)
"""Errors of systems and network drives that cannot flush a directory."""


def sync_to_disk(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    is_directory = path.is_dir()
    try:
        # Windows flushes only files that are open for writing, and cannot open a directory.
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
            f"'{url}' cannot be opened: chained URLs, with '::', are not accepted. Use the URL of "
            "the store itself."
        )
    # A protocol that the program itself has registered with fsspec is the user's own choice.
    if protocol not in PROTOCOLS and protocol not in registry:
        raise CheckpointError(
            f"'{url}' cannot be opened: '{protocol}' is not one of the accepted protocols."
            f"{nearest(protocol, PROTOCOLS)} If you trust it, call "
            f"fsspec.get_filesystem_class('{protocol}') first."
        )


class RemoteStorage:
    """A directory in a file system of fsspec; a file appears when it is complete."""

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
        except (ImportError, ValueError) as error:  # Unknown protocol, or its package is missing.
            raise CheckpointError(f"'{url}' cannot be opened: {error}.") from error

    def write(self, name: str, write: Write) -> None:
        """Write a file; because of the transaction it appears complete or not at all."""
        self._files.makedirs(self._path, exist_ok=True)
        with self._files.transaction, self._files.open(self._path_of(name), "wb") as file:
            write(file)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return cast("BinaryIO", self._files.open(self._path_of(name), "rb"))

    def copy(self, name: str, new_name: str) -> None:
        """Copy a file within the store."""
        if name != new_name:
            self._files.copy(self._path_of(name), self._path_of(new_name))

    def remove(self, name: str) -> None:
        """Delete a file."""
        if self._files.exists(self._path_of(name)):
            self._files.rm(self._path_of(name))

    def names(self) -> list[str]:
        """List the files as they are now."""
        self._files.invalidate_cache()  # fsspec would return the listing of the last call.
        if not self._files.exists(self._path):
            return []
        return sorted(str(p).rsplit("/", 1)[-1] for p in self._files.ls(self._path, detail=False))

    def size(self, name: str) -> int:
        """Return the size of a file."""
        return int(self._files.size(self._path_of(name)))

    def free_bytes(self) -> int | None:
        """Return None: remote stores do not report it."""
        return None

    def clean(self) -> list[str]:
        """Return nothing: a file that was not completed never appeared."""
        return []

    def _path_of(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"
