"""``mmengine.fileio``: read and write files, on the local disk and where projects keep them."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.fileio.backends import (
    BaseStorageBackend,
    LocalBackend,
    register_backend,
)
from hookloop_mmengine.fileio.file_client import (
    FileClient,
    HardDiskBackend,
)
from hookloop_mmengine.fileio.handlers import (
    BaseFileHandler,
    JsonHandler,
    PickleHandler,
    YamlHandler,
    register_handler,
)
from hookloop_mmengine.fileio.io import (
    copy_if_symlink_fails,
    copyfile,
    copyfile_from_local,
    copyfile_to_local,
    copytree,
    copytree_from_local,
    copytree_to_local,
    dump,
    exists,
    generate_presigned_url,
    get,
    get_file_backend,
    get_local_path,
    get_text,
    isdir,
    isfile,
    join_path,
    list_dir_or_file,
    load,
    put,
    put_text,
    remove,
    rmtree,
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
    "copy_if_symlink_fails",
    "copyfile",
    "copyfile_from_local",
    "copyfile_to_local",
    "copytree",
    "copytree_from_local",
    "copytree_to_local",
    "dump",
    "exists",
    "generate_presigned_url",
    "get",
    "get_file_backend",
    "get_local_path",
    "get_text",
    "isdir",
    "isfile",
    "join_path",
    "list_dir_or_file",
    "load",
    "put",
    "put_text",
    "register_backend",
    "register_handler",
    "remove",
    "rmtree",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
