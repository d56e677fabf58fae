"""``mmengine.utils.path``: small functions of files and directories."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, cast


def is_filepath(x: object) -> bool:
    """Return whether a value can be a path."""
    return isinstance(x, str | Path)


def fopen(filepath: str | Path, *args: Any, **kwargs: Any) -> IO[Any]:  # noqa: ANN401 - as for open
    """Open a file."""
    if not is_filepath(filepath):
        raise ValueError("`filepath` should be a string or a Path")
    return cast("IO[Any]", Path(filepath).open(*args, **kwargs))


def check_file_exist(filename: str | Path, msg_tmpl: str = 'file "{}" does not exist') -> None:
    """Raise if a file does not exist."""
    if not Path(filename).is_file():
        raise FileNotFoundError(msg_tmpl.format(filename))


def mkdir_or_exist(dir_name: str | Path, mode: int = 0o777) -> None:
    """Make a directory with its parents, unless it exists."""
    # The directory of a bare file name is "", which would be the current one.
    if dir_name != "":
        Path(dir_name).expanduser().mkdir(mode, parents=True, exist_ok=True)


def symlink(src: str | Path, dst: str | Path, overwrite: bool = True, **kwargs: Any) -> None:  # noqa: ANN401
    """Make a symbolic link; an older one is replaced."""
    if overwrite and os.path.lexists(dst):
        Path(dst).unlink()
    Path(dst).symlink_to(src, **kwargs)


def scandir(
    dir_path: str | Path,
    suffix: str | tuple[str, ...] | None = None,
    recursive: bool = False,
    case_sensitive: bool = True,
) -> Iterable[str]:
    """Yield the paths of a directory's files, relative to it; hidden files are left out."""
    if not is_filepath(dir_path):
        raise TypeError('"dir_path" must be a string or Path object')
    if suffix is not None and not isinstance(suffix, str | tuple):
        raise TypeError('"suffix" must be a string or tuple of strings')
    if suffix is not None and not case_sensitive:
        listed = (suffix,) if isinstance(suffix, str) else suffix
        suffix = tuple(ending.lower() for ending in listed)
    return _scanned(Path(dir_path), suffix, recursive, case_sensitive)


def _scanned(
    directory: Path, suffix: str | tuple[str, ...] | None, recursive: bool, case_sensitive: bool
) -> Iterable[str]:
    # Sorted, so that the order does not depend on the file system.
    for path in sorted(directory.rglob("*") if recursive else directory.iterdir()):
        name = path.name if case_sensitive else path.name.lower()
        is_wanted = suffix is None or name.endswith(suffix)
        if path.is_file() and not name.startswith(".") and is_wanted:
            yield str(path.relative_to(directory))


def find_vcs_root(path: str | Path, markers: Sequence[str] = (".git",)) -> str | None:
    """Return the nearest directory above a path that has one of the markers, or None."""
    start = Path(path).expanduser().absolute()
    for directory in (start, *start.parents):
        if any((directory / marker).exists() for marker in markers):
            return str(directory)
    return None


def is_abs(path: str) -> bool:
    """Return whether a path is absolute, or a URL."""
    return Path(path).is_absolute() or path.startswith(("http://", "https://", "s3://"))
