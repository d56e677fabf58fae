"""``mmengine.fileio``: read and write small files on the local disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
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
    """Read a JSON or YAML file; a pickle would run code, so it is rejected."""
    kind = _format_of(file, file_format)
    text = Path(file).read_text(encoding="utf-8")
    return json.loads(text) if kind == "json" else yaml.safe_load(text)


def dump(
    obj: object,
    file: str | Path | None = None,
    file_format: str | None = None,
    **kwargs: object,
) -> str | None:
    """Write JSON or YAML to a file, or return it as text if there is no file."""
    kind = _format_of(file, file_format)
    # Paths and numbers of numpy have no JSON of their own.
    text = json.dumps(obj, default=str) if kind == "json" else yaml.safe_dump(obj)
    if file is None:
        return text
    Path(file).write_text(text, encoding="utf-8")
    return None


def list_from_file(
    filename: str | Path,
    encoding: str = "utf-8",
    prefix: str = "",
    offset: int = 0,
    max_num: int = 0,
) -> list[str]:
    """Read the lines of a file.

    Args:
        filename: The file.
        encoding: Its encoding.
        prefix: Put before each line.
        offset: How many lines at the start are skipped.
        max_num: The greatest number of lines; 0 for all.
    """
    # Not splitlines(), which also splits at form feeds and Unicode separators inside a line.
    with Path(filename).open(encoding=encoding) as lines:
        end = offset + max_num if max_num > 0 else None
        return [prefix + line.rstrip("\n\r") for line in islice(lines, offset, end)]


def exists(filepath: str | Path, backend_args: object = None) -> bool:
    """Return whether a file or directory exists."""
    return Path(filepath).exists()


def isfile(filepath: str | Path, backend_args: object = None) -> bool:
    """Return whether a path is an existing file."""
    return Path(filepath).is_file()


def join_path(filepath: str | Path, *filepaths: str | Path, backend_args: object = None) -> str:
    """Join the parts of a path."""
    return str(Path(filepath).joinpath(*filepaths))


def get(filepath: str | Path, backend_args: object = None) -> bytes:
    """Read the bytes of a file."""
    # An error and not a read from disk: the same path may be another file in a foreign store.
    _check_local(backend_args)
    return Path(filepath).read_bytes()


def get_text(filepath: str | Path, encoding: str = "utf-8", backend_args: object = None) -> str:
    """Read the text of a file."""
    _check_local(backend_args)
    return Path(filepath).read_text(encoding=encoding)


def put(obj: bytes, filepath: str | Path, backend_args: object = None) -> None:
    """Write bytes to a file; missing directories are made."""
    _check_local(backend_args)
    Path(filepath).parent.mkdir(parents=True, exist_ok=True)
    Path(filepath).write_bytes(obj)


def put_text(obj: str, filepath: str | Path, backend_args: object = None) -> None:
    """Write text to a file; missing directories are made."""
    put(obj.encode(), filepath, backend_args)


def isdir(filepath: str | Path, backend_args: object = None) -> bool:
    """Return whether a path is an existing directory."""
    return Path(filepath).is_dir()


class FileClient:
    """The older interface to files on the local disk.

    Args:
        backend: Only ``disk``.
        prefix: Accepted for its name; it has no effect.
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
        """Return the client for a URI."""
        return cls(**(file_client_args or {}))

    # Static, because a plain function in a class would be given the client as its first argument.
    get, get_text, put, put_text = (
        staticmethod(function) for function in (get, get_text, put, put_text)
    )
    exists, isdir, isfile, join_path = (
        staticmethod(function) for function in (exists, isdir, isfile, join_path)
    )


def _format_of(file: str | Path | None, file_format: str | None) -> str:
    kind = file_format or (Path(file).suffix[1:] if file is not None else None)
    if kind is None:
        raise ValueError("file_format must be specified since file is None")
    if kind not in ("json", "yaml", "yml"):
        raise TypeError(f"Unsupported format: {kind}. Use json or yaml.")
    return kind


def _check_local(backend_args: object) -> None:
    name = backend_args.get("backend", "local") if isinstance(backend_args, Mapping) else "local"
    if name not in ("local", "disk"):
        raise ValueError(
            f"The file backend '{name}' is not offered, only files on the local disk. Read other "
            "files with fsspec in the hook itself."
        )
