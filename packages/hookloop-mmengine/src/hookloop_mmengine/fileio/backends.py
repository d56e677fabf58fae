"""``mmengine.fileio.backends``: where files are; here, the local disk."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from hookloop_mmengine.missing import GRAFT, reject

Location = str | Path


class BaseStorageBackend(ABC):
    """The base of backends; a subclass reads and may write files."""

    _allow_symlink = False

    @property
    def allow_symlink(self) -> bool:
        """Whether files can be linked."""
        return self._allow_symlink

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @abstractmethod
    def get(self, filepath: Location) -> bytes:
        """Read the bytes of a file."""

    @abstractmethod
    def get_text(self, filepath: Location, encoding: str = "utf-8") -> str:
        """Read the text of a file."""


class LocalBackend(BaseStorageBackend):
    """Files on the local disk."""

    _allow_symlink = True

    def get(self, filepath: Location) -> bytes:
        return Path(filepath).read_bytes()

    def get_text(self, filepath: Location, encoding: str = "utf-8") -> str:
        return Path(filepath).read_text(encoding=encoding)

    def put(self, obj: bytes, filepath: Location) -> None:
        """Write bytes to a file; missing directories are made."""
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        Path(filepath).write_bytes(obj)

    def put_text(self, obj: str, filepath: Location, encoding: str = "utf-8") -> None:
        """Write text to a file; missing directories are made."""
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        Path(filepath).write_text(obj, encoding=encoding)

    def exists(self, filepath: Location) -> bool:
        """Return whether a file or directory exists."""
        return Path(filepath).exists()

    def isdir(self, filepath: Location) -> bool:
        """Return whether a path is an existing directory."""
        return Path(filepath).is_dir()

    def isfile(self, filepath: Location) -> bool:
        """Return whether a path is an existing file."""
        return Path(filepath).is_file()

    def join_path(self, filepath: Location, *filepaths: Location) -> str:
        """Join the parts of a path."""
        # Not Path, which would change "./a" and "a/".
        return os.path.join(filepath, *filepaths)

    @contextmanager
    def get_local_path(self, filepath: Location) -> Iterator[Location]:
        """Yield the path of a file on the disk, which is its own."""
        yield filepath

    def copyfile(self, src: Location, dst: Location) -> Location:
        """Copy a file; return its new path."""
        return shutil.copy(src, dst)

    def remove(self, filepath: Location) -> None:
        """Remove a file."""
        if not self.exists(filepath):
            raise FileNotFoundError(f"filepath {filepath} does not exist")
        if self.isdir(filepath):
            raise IsADirectoryError("filepath should be a file")
        Path(filepath).unlink()

    def list_dir_or_file(
        self,
        dir_path: Location,
        list_dir: bool = True,
        list_file: bool = True,
        suffix: str | tuple[str, ...] | None = None,
        recursive: bool = False,
    ) -> Iterator[str]:
        """Yield the paths in a directory, relative to it; hidden files are left out."""
        if list_dir and suffix is not None:
            raise TypeError("`suffix` should be None when `list_dir` is True")
        if suffix is not None and not isinstance(suffix, str | tuple):
            raise TypeError("`suffix` must be a string or tuple of strings")
        return self._listed(Path(dir_path), list_dir, list_file, suffix, recursive)

    def _listed(
        self,
        root: Path,
        list_dir: bool,
        list_file: bool,
        suffix: str | tuple[str, ...] | None,
        recursive: bool,
    ) -> Iterator[str]:
        # Sorted, so that the order does not depend on the file system.
        for path in sorted(root.rglob("*") if recursive else root.iterdir()):
            shown = str(path.relative_to(root))
            is_wanted = suffix is None or shown.endswith(suffix)
            if (path.is_dir() and list_dir) or (
                path.is_file() and list_file and is_wanted and not path.name.startswith(".")
            ):
                yield shown


class HardDiskBackend(LocalBackend):
    """The older name of `LocalBackend`."""


class FileClient:
    """The older interface to a backend: it has its methods.

    Args:
        backend: The name of the backend; ``disk`` for the local disk.
        prefix: The beginning of the paths.
        kwargs: Accepted for their names: the local disk has no settings.
    """

    def __init__(
        self, backend: str | None = None, prefix: str | None = None, **kwargs: object
    ) -> None:
        if (name := backend or prefix or "disk") != "disk":
            raise not_offered(name)
        self.client = HardDiskBackend()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the backend
        if name == "client":  # Before it is set, the line below would end up here again.
            raise AttributeError(name)
        return getattr(self.client, name)

    @classmethod
    def infer_client(
        cls, file_client_args: Mapping[str, Any] | None = None, uri: Location | None = None
    ) -> FileClient:
        """Return the client of the arguments, or of a path."""
        if file_client_args is not None:
            return cls(**file_client_args)
        if uri is None:
            raise AssertionError("file_client_args or uri is needed")
        return cls(prefix=parse_uri_prefix(uri) or None)


def parse_uri_prefix(uri: Location) -> str:
    """Return what a path begins with: ``s3`` of ``cluster:s3://a/b``, nothing of a plain one."""
    begin, mark, _ = str(uri).partition("://")
    return begin.rpartition(":")[2] if mark else ""


def get_file_backend(
    uri: Location | None = None,
    *,
    backend_args: Mapping[str, object] | None = None,
    enable_singleton: bool = False,
) -> LocalBackend:
    """Return the backend of a path, or the one that the arguments name.

    Args:
        uri: The path; needed if the arguments name no backend.
        backend_args: The ``backend``.
        enable_singleton: Accepted for its name: a backend has nothing to share.
    """
    name = (backend_args or {}).get("backend")
    if uri is None and name is None:
        raise ValueError('uri should not be None when "backend" does not exist in backend_args')
    chosen = parse_uri_prefix(uri or "") if name is None else str(name)
    if chosen not in ("", "local"):
        raise not_offered(chosen)
    return LocalBackend()


def not_offered(name: str) -> ValueError:
    """Return the error for files elsewhere."""
    # An error and not a read from disk: the same path may be another file in a foreign store.
    return ValueError(
        f"The file backend '{name}' is not offered, only files on the local disk. Read other "
        f"files with fsspec in the hook itself, or {GRAFT}."
    )


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
