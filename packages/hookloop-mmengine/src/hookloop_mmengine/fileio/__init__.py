"""``mmengine.fileio``: read and write files on the local disk."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.fileio.backends import (
    BaseStorageBackend,
    FileClient,
    HardDiskBackend,
    LocalBackend,
    get_file_backend,
)
from hookloop_mmengine.fileio.handlers import (
    BaseFileHandler,
    JsonHandler,
    PickleHandler,
    YamlHandler,
)
from hookloop_mmengine.fileio.io import (
    dump,
    exists,
    get,
    get_local_path,
    get_text,
    isdir,
    isfile,
    join_path,
    load,
    put,
    put_text,
)
from hookloop_mmengine.missing import reject

__all__ = [
    "BaseFileHandler",
    "BaseStorageBackend",
    "FileClient",
    "HardDiskBackend",
    "JsonHandler",
    "LocalBackend",
    "PickleHandler",
    "YamlHandler",
    "dump",
    "exists",
    "get",
    "get_file_backend",
    "get_local_path",
    "get_text",
    "isdir",
    "isfile",
    "join_path",
    "load",
    "put",
    "put_text",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
