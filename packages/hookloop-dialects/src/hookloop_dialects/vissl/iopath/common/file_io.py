"""``iopath.common.file_io``: files by their paths."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Any, ClassVar

from hookloop.errors import DataError


class PathManager:
    """Opens and moves local files; addresses of other kinds are rejected."""

    def open(self, path: str, mode: str = "r", buffering: int = -1, **kwargs: Any) -> IO[Any]:  # noqa: ANN401 - as the builtin
        """Open a file; text is UTF-8."""
        encoding = {} if "b" in mode else {"encoding": "utf-8"}
        return open(_local(path), mode, buffering, **(encoding | kwargs))

    def exists(self, path: str) -> bool:
        """Return whether there is something."""
        return _local(path).exists()

    def isfile(self, path: str) -> bool:
        """Return whether it is a file."""
        return _local(path).is_file()

    def isdir(self, path: str) -> bool:
        """Return whether it is a directory."""
        return _local(path).is_dir()

    def ls(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return sorted(entry.name for entry in _local(path).iterdir())

    def mkdirs(self, path: str) -> None:
        """Create a directory, unless it exists."""
        _local(path).mkdir(parents=True, exist_ok=True)

    def rm(self, path: str) -> None:
        """Delete a file."""
        _local(path).unlink()

    def copy(self, src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copy a file, in place of an existing one only with ``overwrite``; tell if it was."""
        if _local(dst_path).exists() and not overwrite:
            return False
        shutil.copyfile(_local(src_path), _local(dst_path))
        return True

    def mv(self, src_path: str, dst_path: str) -> bool:
        """Move a file."""
        _local(src_path).rename(_local(dst_path))
        return True

    def symlink(self, src_path: str, dst_path: str) -> bool:
        """Make a link to a file."""
        _local(dst_path).symlink_to(_local(src_path).absolute())
        return True

    def get_local_path(self, path: str, **kwargs: object) -> str:
        """Return the path."""
        return str(_local(path))


class PathManagerFactory:
    """Path managers by name."""

    _made: ClassVar[dict[str, PathManager]] = {}

    @staticmethod
    def get(key: str = "default") -> PathManager:
        """Return the path manager of a name; the first call makes it."""
        return PathManagerFactory._made.setdefault(key, PathManager())


g_pathmgr = PathManager()


def _local(path: str) -> Path:
    if "://" in str(path):
        raise DataError(f"'{path}' is not a local path: copy the file, or install iopath.")
    return Path(path)
