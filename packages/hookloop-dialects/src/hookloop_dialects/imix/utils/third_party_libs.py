"""``imix.utils.third_party_libs``: `PathManager` for local files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO, Any

from hookloop.errors import HookError


class PathManager:
    """The file functions that iMIX's hooks use; paths with a protocol are rejected."""

    @classmethod
    def open(cls, path: str, mode: str = "r", buffering: int = -1, **kwargs: Any) -> IO[Any]:  # noqa: ANN401 - as the builtin
        """Open a file; one that is written gets its directory."""
        local = Path(cls.get_local_path(path))
        # iMIX opens files before anything has made the directory of the run.
        if set(mode) & set("wax"):
            local.parent.mkdir(parents=True, exist_ok=True)
        return local.open(mode, buffering, **kwargs)

    @classmethod
    def get_local_path(cls, path: str, **_: object) -> str:
        """Return the path, if it is one of this machine."""
        if "://" in str(path):
            raise HookError(f"PathManager: '{path}' is not a local path. Copy the file first.")
        return os.path.expanduser(path)

    @classmethod
    def exists(cls, path: str) -> bool:
        """Return whether there is a file or directory."""
        return os.path.exists(cls.get_local_path(path))

    @classmethod
    def isfile(cls, path: str) -> bool:
        """Return whether it is a file."""
        return os.path.isfile(cls.get_local_path(path))

    @classmethod
    def isdir(cls, path: str) -> bool:
        """Return whether it is a directory."""
        return os.path.isdir(cls.get_local_path(path))

    @classmethod
    def ls(cls, path: str) -> list[str]:
        """List a directory."""
        return os.listdir(cls.get_local_path(path))

    @classmethod
    def mkdirs(cls, path: str) -> None:
        """Make a directory with its parents."""
        os.makedirs(cls.get_local_path(path), exist_ok=True)

    @classmethod
    def rm(cls, path: str) -> None:
        """Remove a file."""
        os.remove(cls.get_local_path(path))

    @classmethod
    def copy(cls, src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copy a file; return whether it was copied."""
        if cls.exists(dst_path) and not overwrite:
            return False
        shutil.copyfile(cls.get_local_path(src_path), cls.get_local_path(dst_path))
        return True
