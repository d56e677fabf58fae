"""``mmengine.fileio.io``: functions of files, wherever they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from hookloop_mmengine.fileio.backends import (
    BaseStorageBackend,
    Location,
    make_backend,
)
from hookloop_mmengine.fileio.handlers import BaseFileHandler, file_handlers

Args = Mapping[str, object] | None
backend_instances: dict[str, BaseStorageBackend] = {}


def parse_uri_prefix(uri: Location) -> str:
    """Return what a path begins with: ``s3`` of ``cluster:s3://a/b``, nothing of a plain one."""
    begin, mark, _ = str(uri).partition("://")
    return begin.rpartition(":")[2] if mark else ""


def get_file_backend(
    uri: Location | None = None, *, backend_args: Args = None, enable_singleton: bool = False
) -> Any:  # noqa: ANN401 - backends of projects have methods of their own
    """Return the backend of a path.

    Args:
        uri: The path; needed if the arguments name no backend.
        backend_args: The ``backend`` and its arguments.
        enable_singleton: Whether an older one with the same arguments is returned.
    """
    arguments = dict(backend_args or {})
    if uri is None and "backend" not in arguments:
        raise ValueError('uri should not be None when "backend" does not exist in backend_args')
    prefix = "" if uri is None else parse_uri_prefix(uri)
    if not enable_singleton:
        return make_backend(prefix, arguments)
    key = f"{prefix}:{json.dumps(arguments)}"
    if key not in backend_instances:
        backend_instances[key] = make_backend(prefix, arguments)
    return backend_instances[key]


def _backend(filepath: Location, backend_args: Args) -> Any:  # noqa: ANN401 - as above
    return get_file_backend(filepath, backend_args=backend_args, enable_singleton=True)


def get(filepath: Location, backend_args: Args = None) -> bytes:
    """Read the bytes of a file."""
    return _backend(filepath, backend_args).get(filepath)  # type: ignore[no-any-return]


def get_text(filepath: Location, encoding: str = "utf-8", backend_args: Args = None) -> str:
    """Read the text of a file."""
    return _backend(filepath, backend_args).get_text(filepath, encoding)  # type: ignore[no-any-return]


def put(obj: bytes, filepath: Location, backend_args: Args = None) -> None:
    """Write bytes to a file; missing directories are made."""
    _backend(filepath, backend_args).put(obj, filepath)


def put_text(obj: str, filepath: Location, backend_args: Args = None) -> None:
    """Write text to a file; missing directories are made."""
    _backend(filepath, backend_args).put_text(obj, filepath)


def exists(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a file or directory exists."""
    return bool(_backend(filepath, backend_args).exists(filepath))


def isdir(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a path is an existing directory."""
    return bool(_backend(filepath, backend_args).isdir(filepath))


def isfile(filepath: Location, backend_args: Args = None) -> bool:
    """Return whether a path is an existing file."""
    return bool(_backend(filepath, backend_args).isfile(filepath))


def join_path(filepath: Location, *filepaths: Location, backend_args: Args = None) -> str:
    """Join the parts of a path."""
    return _backend(filepath, backend_args).join_path(filepath, *filepaths)  # type: ignore[no-any-return]


@contextmanager
def get_local_path(filepath: Location, backend_args: Args = None) -> Iterator[Location]:
    """Yield the path of a file on the disk, for a block of code."""
    with _backend(filepath, backend_args).get_local_path(str(filepath)) as path:
        yield path


def copyfile(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a file; return its new path."""
    return _backend(src, backend_args).copyfile(src, dst)  # type: ignore[no-any-return]


def copytree(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a directory to a new path, and return that."""
    return _backend(src, backend_args).copytree(src, dst)  # type: ignore[no-any-return]


def copyfile_from_local(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a file of the disk; return its new path."""
    return _backend(dst, backend_args).copyfile_from_local(src, dst)  # type: ignore[no-any-return]


def copytree_from_local(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a directory of the disk; return its new path."""
    return _backend(dst, backend_args).copytree_from_local(src, dst)  # type: ignore[no-any-return]


def copyfile_to_local(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a file to the disk; return its new path."""
    return _backend(dst, backend_args).copyfile_to_local(src, dst)  # type: ignore[no-any-return]


def copytree_to_local(src: Location, dst: Location, backend_args: Args = None) -> Location:
    """Copy a directory to the disk; return its new path."""
    return _backend(dst, backend_args).copytree_to_local(src, dst)  # type: ignore[no-any-return]


def remove(filepath: Location, backend_args: Args = None) -> None:
    """Remove a file."""
    _backend(filepath, backend_args).remove(filepath)


def rmtree(dir_path: Location, backend_args: Args = None) -> None:
    """Remove a directory with everything in it."""
    _backend(dir_path, backend_args).rmtree(dir_path)


def copy_if_symlink_fails(src: Location, dst: Location, backend_args: Args = None) -> bool:
    """Make a link, or a copy where links cannot be made; return whether it is a link."""
    return bool(_backend(src, backend_args).copy_if_symlink_fails(src, dst))


def list_dir_or_file(
    dir_path: Location,
    list_dir: bool = True,
    list_file: bool = True,
    suffix: str | tuple[str, ...] | None = None,
    recursive: bool = False,
    backend_args: Args = None,
) -> Iterator[str]:
    """Yield the paths in a directory, relative to it; hidden files are left out."""
    backend = _backend(dir_path, backend_args)
    yield from backend.list_dir_or_file(dir_path, list_dir, list_file, suffix, recursive)


def generate_presigned_url(
    url: str, client_method: str = "get_object", expires_in: int = 3600, backend_args: Args = None
) -> str:
    """Return a URL by which others can use a file for a while, if its backend can make one."""
    backend = _backend(url, backend_args)
    if not hasattr(backend, "generate_presigned_url"):
        raise NotImplementedError(f"{backend.name} makes no URLs for other people.")
    return backend.generate_presigned_url(url, client_method, expires_in)  # type: ignore[no-any-return]


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
    from hookloop_mmengine.fileio.file_client import FileClient

    return FileClient.infer_client(file_client_args, file)
