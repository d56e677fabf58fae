"""``mmengine.fileio``: small files, by the ending of their name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

__all__ = [
    "FileClient",
    "dump",
    "exists",
    "get",
    "get_text",
    "isdir",
    "isfile",
    "join_path",
    "list_from_file",
    "load",
    "put",
    "put_text",
]


def load(file: str | Path, file_format: str | None = None, **kwargs: object) -> object:
    """Read JSON or YAML; a pickle would run code, so it is refused."""
    kind = file_format or Path(file).suffix[1:]
    text = Path(file).read_text(encoding="utf-8")
    if kind == "json":
        return json.loads(text)
    if kind in ("yaml", "yml"):
        return yaml.safe_load(text)
    raise TypeError(f"Unsupported format: {kind}. Use json or yaml.")


def dump(obj: object, file: str | Path, file_format: str | None = None, **kwargs: object) -> None:
    """Write JSON or YAML."""
    kind = file_format or Path(file).suffix[1:]
    if kind not in ("json", "yaml", "yml"):
        raise TypeError(f"Unsupported format: {kind}. Use json or yaml.")
    text = json.dumps(obj, default=str) if kind == "json" else yaml.safe_dump(obj)
    Path(file).write_text(text, encoding="utf-8")


def list_from_file(filename: str | Path, encoding: str = "utf-8", prefix: str = "") -> list[str]:
    """Read a file's lines."""
    return [prefix + line for line in Path(filename).read_text(encoding=encoding).splitlines()]


def exists(filepath: str | Path, backend_args: object = None) -> bool:
    """Tell whether there is such a file or directory."""
    return Path(filepath).exists()


def isfile(filepath: str | Path, backend_args: object = None) -> bool:
    """Tell whether there is such a file."""
    return Path(filepath).is_file()


def join_path(filepath: str | Path, *filepaths: str | Path, backend_args: object = None) -> str:
    """Join parts of a path."""
    return str(Path(filepath).joinpath(*filepaths))


def get(filepath: str | Path, backend_args: object = None) -> bytes:
    """Read a file's bytes."""
    _check_local(backend_args)
    return Path(filepath).read_bytes()


def get_text(filepath: str | Path, encoding: str = "utf-8", backend_args: object = None) -> str:
    """Read a file's text."""
    _check_local(backend_args)
    return Path(filepath).read_text(encoding=encoding)


def put(obj: bytes, filepath: str | Path, backend_args: object = None) -> None:
    """Write bytes; directories on the way are made."""
    _check_local(backend_args)
    Path(filepath).parent.mkdir(parents=True, exist_ok=True)
    Path(filepath).write_bytes(obj)


def put_text(obj: str, filepath: str | Path, backend_args: object = None) -> None:
    """Write text."""
    put(obj.encode(), filepath, backend_args)


def isdir(filepath: str | Path, backend_args: object = None) -> bool:
    """Tell whether there is such a directory."""
    return Path(filepath).is_dir()


class FileClient:
    """Files on the disk, as older hooks read and write them.

    Args:
        backend: Only ``disk``.
        prefix: Not needed.
    """

    name = "HardDiskBackend"

    def __init__(
        self, backend: str | None = None, prefix: str | None = None, **kwargs: object
    ) -> None:
        _check_local({"backend": backend or "disk"})

    @classmethod
    def infer_client(
        cls, file_client_args: Mapping[str, str] | None = None, uri: str | Path | None = None
    ) -> FileClient:
        """Return the client for an address."""
        return cls(**(file_client_args or {}))

    get, get_text, put, put_text = (staticmethod(one) for one in (get, get_text, put, put_text))
    exists, isdir, isfile, join_path = (
        staticmethod(one) for one in (exists, isdir, isfile, join_path)
    )


def _check_local(backend_args: object) -> None:
    said = backend_args.get("backend", "local") if isinstance(backend_args, Mapping) else "local"
    if said not in ("local", "disk"):
        raise ValueError(
            f"The file backend '{said}' is not offered, only files on the disk. Read others with "
            "fsspec in the hook itself."
        )
