"""``mmengine.fileio.io``: functions of files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from hookloop_mmengine.fileio.backends import FileClient, Location, get_file_backend
from hookloop_mmengine.fileio.handlers import BaseFileHandler, file_handlers

Args = Mapping[str, object] | None


def get(filepath: Location, backend_args: Args = None) -> bytes:
    """Read the bytes of a file."""
    return get_file_backend(filepath, backend_args=backend_args).get(filepath)


def get_text(filepath: Location, encoding: str = "utf-8", backend_args: Args = None) -> str:
    """Read the text of a file."""
    return get_file_backend(filepath, backend_args=backend_args).get_text(filepath, encoding)


def put(obj: bytes, filepath: Location, backend_args: Args = None) -> None:
    """Write bytes to a file; missing directories are made."""
    get_file_backend(filepath, backend_args=backend_args).put(obj, filepath)


def put_text(obj: str, filepath: Location, backend_args: Args = None) -> None:
    """Write text to a file; missing directories are made."""
    get_file_backend(filepath, backend_args=backend_args).put_text(obj, filepath)


def exists(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a file or directory exists."""
    return get_file_backend(filepath, backend_args=backend_args).exists(filepath)


def isdir(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a path is an existing directory."""
    return get_file_backend(filepath, backend_args=backend_args).isdir(filepath)


def isfile(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a path is an existing file."""
    return get_file_backend(filepath, backend_args=backend_args).isfile(filepath)


def join_path(filepath: Location, *filepaths: Location, backend_args: Args = None) -> str:
    """Join the parts of a path."""
    return get_file_backend(filepath, backend_args=backend_args).join_path(filepath, *filepaths)


def get_local_path(
    filepath: Location, backend_args: Args = None
) -> AbstractContextManager[Location]:
    """Yield the path of a file on the disk, for a block of code."""
    return get_file_backend(filepath, backend_args=backend_args).get_local_path(str(filepath))


# --- objects --------------------------------------------------------------------------------------


def load(
    file: Any,  # noqa: ANN401 - a path or an open file
    file_format: str | None = None,
    file_client_args: Args = None,
    backend_args: Args = None,
    **kwargs: Any,  # noqa: ANN401 - those of the format
) -> object:
    """Read an object from a file: JSON, YAML, a pickle of plain data, or a registered format.

    Args:
        file: The path, or an open file.
        file_format: The format; by default the ending of the path.
        file_client_args: The older name of ``backend_args``.
        backend_args: The backend of the path, and its arguments.
        kwargs: Options of the format.
    """
    handler = _handler(file, file_format)
    if hasattr(file, "read"):
        return handler.load_from_fileobj(file, **kwargs)
    backend = _chosen(file, file_client_args, backend_args)
    if handler.str_like:
        return handler.load_from_fileobj(StringIO(backend.get_text(file)), **kwargs)
    return handler.load_from_fileobj(BytesIO(backend.get(file)), **kwargs)


def dump(
    obj: object,
    file: Any = None,  # noqa: ANN401 - a path or an open file
    file_format: str | None = None,
    file_client_args: Args = None,
    backend_args: Args = None,
    **kwargs: Any,  # noqa: ANN401 - those of the format
) -> str | bytes | None:
    """Write an object to a file, or return its text if there is no file.

    Args:
        obj: The object.
        file: The path, or an open file.
        file_format: The format; by default the ending of the path.
        file_client_args: The older name of ``backend_args``.
        backend_args: The backend of the path, and its arguments.
        kwargs: Options of the format.
    """
    handler = _handler(file, file_format)
    if file is None:
        return handler.dump_to_str(obj, **kwargs)
    if hasattr(file, "write"):
        handler.dump_to_fileobj(obj, file, **kwargs)
        return None
    backend = _chosen(file, file_client_args, backend_args)
    # Complete before it is written, so that an object that does not fit leaves no half file.
    content = handler.dump_to_str(obj, **kwargs)
    (backend.put_text if handler.str_like else backend.put)(content, file)
    return None


def _handler(file: object, file_format: str | None) -> BaseFileHandler:
    if file_format is None and isinstance(file, str | Path):
        file_format = str(file).rsplit(".", 1)[-1]
    if file_format is None and file is None:
        raise ValueError("file_format must be specified since file is None")
    if not (file is None or isinstance(file, str | Path) or hasattr(file, "read")):
        raise TypeError('"file" must be a filepath str or a file-object')
    if file_format not in file_handlers:
        known = ", ".join(file_handlers)
        raise TypeError(f"Unsupported format: {file_format}. Use one of {known}.")
    return file_handlers[file_format]


def _chosen(file: Location, file_client_args: Args, backend_args: Args) -> Any:  # noqa: ANN401
    if file_client_args is None:
        return get_file_backend(file, backend_args=backend_args)
    if backend_args is not None:
        raise ValueError('"file_client_args" and "backend_args" cannot be set at the same time.')
    return FileClient.infer_client(file_client_args, file)
