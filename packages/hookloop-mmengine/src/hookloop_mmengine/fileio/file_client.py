"""``mmengine.fileio.FileClient``: the older interface to files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hookloop_mmengine.fileio.backends import (
    Backend,
    BaseStorageBackend,
    LocalBackend,
    Location,
    not_offered,
)
from hookloop_mmengine.fileio.io import parse_uri_prefix


class HardDiskBackend(LocalBackend):
    """The older name of `LocalBackend`."""


class FileClient:
    """The older interface to a backend: it has its methods.

    Args:
        backend: The name of the backend; ``disk`` for the local disk.
        prefix: The beginning of the paths; it chooses the backend if that has no name.
        kwargs: Arguments of the backend.
    """

    _backends: ClassVar[dict[str, Backend]] = {"disk": HardDiskBackend}
    _prefix_to_backends: ClassVar[dict[str, Backend]] = {}

    def __init__(
        self, backend: str | None = None, prefix: str | None = None, **kwargs: object
    ) -> None:
        table, name = self._backends, backend
        if backend is None and prefix:
            table, name = self._prefix_to_backends, prefix
        found = table.get(name or "disk")
        if found is None:
            raise not_offered(str(name))
        self.client = found(**kwargs)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the backend
        if name == "client":  # Before it is set, the line below would end up here again.
            raise AttributeError(name)
        return getattr(self.client, name)

    @classmethod
    def infer_client(
        cls, file_client_args: Mapping[str, Any] | None = None, uri: Location | None = None
    ) -> FileClient:
        """Return the client of the arguments, or of a path."""
        if file_client_args is None and uri is None:
            raise AssertionError("file_client_args or uri is needed")
        if file_client_args is None and uri is not None:
            return cls(prefix=cls.parse_uri_prefix(uri))
        return cls(**(file_client_args or {}))

    @staticmethod
    def parse_uri_prefix(uri: Location) -> str | None:
        """Return what a path begins with, or None."""
        return parse_uri_prefix(uri) or None

    @classmethod
    def register_backend(
        cls,
        name: str,
        backend: Backend | None = None,
        force: bool = False,
        prefixes: str | list[str] | tuple[str, ...] | None = None,
    ) -> Any:  # noqa: ANN401 - a decorator, or None
        """Register a backend; without ``backend``, return a decorator."""

        def register(backend: Backend) -> Backend:
            if BaseStorageBackend not in getattr(backend, "__mro__", ()):
                raise TypeError(f"backend {backend} is not a subclass of BaseStorageBackend")
            begins = [prefixes] if isinstance(prefixes, str) else list(prefixes or ())
            for table, keys in ((cls._backends, [name]), (cls._prefix_to_backends, begins)):
                for key in keys:
                    if key in table and not force:
                        raise KeyError(
                            f"{key} is already registered as a storage backend, add "
                            '"force=True" if you want to override it'
                        )
                    table[key] = backend
            return backend

        return register if backend is None else register(backend) and None
