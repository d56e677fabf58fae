"""``mmengine.fileio.backends``: where files are; here, the local disk."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

from hookloop_mmengine.missing import GRAFT, reject

Location = str | Path
_FOREIGN = {"petrel": "petrel", "s3": "petrel", "http": "http", "https": "http"}
_NAMES = {"lmdb", "memcached", *_FOREIGN.values()}


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

    def copytree(self, src: Location, dst: Location) -> Location:
        """Copy a directory to a new path, and return that."""
        return shutil.copytree(src, dst)

    # The names of these say in which direction; here both ends are the disk.
    copyfile_from_local = copyfile_to_local = copyfile
    copytree_from_local = copytree_to_local = copytree

    def remove(self, filepath: Location) -> None:
        """Remove a file."""
        if not self.exists(filepath):
            raise FileNotFoundError(f"filepath {filepath} does not exist")
        if self.isdir(filepath):
            raise IsADirectoryError("filepath should be a file")
        Path(filepath).unlink()

    def rmtree(self, dir_path: Location) -> None:
        """Remove a directory with everything in it."""
        shutil.rmtree(dir_path)

    def copy_if_symlink_fails(self, src: Location, dst: Location) -> bool:
        """Make a link, or a copy where links cannot be made; return whether it is a link."""
        try:
            Path(dst).symlink_to(src)
        except OSError:
            (self.copyfile if self.isfile(src) else self.copytree)(src, dst)
            return False
        return True

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


Backend = type[BaseStorageBackend]
B = TypeVar("B", bound=Backend)

backends: dict[str, Backend] = {}
prefix_to_backends: dict[str, Backend] = {}


def register_backend(
    name: str,
    backend: B | None = None,
    force: bool = False,
    prefixes: str | list[str] | tuple[str, ...] | None = None,
) -> Callable[[B], B] | None:
    """Register a backend; without ``backend``, return a decorator.

    Args:
        name: The name in ``backend_args``.
        backend: A subclass of `BaseStorageBackend`.
        force: Whether it may replace another one.
        prefixes: The beginnings of its paths, without ``://``.
    """
    if not isinstance(name, str):
        raise TypeError(f"the backend name should be a string, but got {type(name)}")

    def register(backend: B) -> B:
        if BaseStorageBackend not in getattr(backend, "__mro__", ()):
            raise TypeError(f"backend {backend} is not a subclass of BaseStorageBackend")
        begins = [prefixes] if isinstance(prefixes, str) else list(prefixes or ())
        for table, keys in ((backends, [name]), (prefix_to_backends, begins)):
            for key in keys:
                if key in table and not force:
                    raise ValueError(
                        f"{key} is already registered as a storage backend, add "
                        '"force=True" if you want to override it'
                    )
                table[key] = backend
        return backend

    if backend is None:
        return register
    register(backend)
    return None


register_backend("local", LocalBackend, prefixes="")


def make_backend(prefix: str, backend_args: Mapping[str, object]) -> BaseStorageBackend:
    """Make the backend that the arguments name, or that of a prefix."""
    arguments = dict(backend_args)
    name = arguments.pop("backend", None)
    found = prefix_to_backends.get(prefix) if name is None else backends.get(str(name))
    if found is None:
        raise not_offered(str(name or prefix))
    return found(**arguments)


def not_offered(name: str) -> ValueError:
    """Return the error for a backend that is not registered."""
    if _FOREIGN.get(name, name) not in _NAMES:
        return ValueError(f"Backend {name} is not supported. There are {', '.join(backends)}.")
    # An error and not a read from disk: the same path may be another file in a foreign store.
    return ValueError(
        f"The file backend '{name}' is not offered, only files on the local disk. Read other "
        f"files with fsspec in the hook itself, or {GRAFT}."
    )


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
