"""The one decision whether a file that some other file names is a checkpoint, which we may delete.

An index, a pointer or a checkpoint may be a stranger's. What it lists is deleted only if its name
is that of a file beside it, and its content is what we write; whatever else it is, it stays.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from hookloop.checkpoint.shards.manifest import check_names, open_plain, read_manifest
from hookloop.checkpoint.store.storage import (
    LocalStorage,
    Storage,
    is_checkpoint_directory,
    is_file_name,
)
from hookloop.errors import CheckpointError
from hookloop.runs.checksum import open_archive

PARTS = ("model", "progress", "versions", "hookloop")
"""Names that are in every checkpoint of a run, however small it is."""

MOST = 1 << 28
"""Bytes of the structure of a file that are read at most."""

_OF_SHARDS = re.compile(r"__\d+_\d+\.distcp|state\.pt|\.metadata")


def is_ours(storage: Storage, name: str) -> bool:
    """Return whether a name in a store is that of a checkpoint of ours, by name and by content."""
    if not is_file_name(name):
        return False
    try:
        if not isinstance(storage, LocalStorage):
            with storage.open(name) as file:
                return _holds(file, PARTS)
        path = storage.directory / name
        if is_checkpoint_directory(path):
            return _is_directory_of_ours(path)
        with open_plain(path) as file:
            return _holds(file, PARTS)
    except OSError:
        return False


def is_checkpoint_file(path: Path, *forms: Sequence[str]) -> bool:
    """Return whether a path that a checkpoint names is one itself.

    Args:
        path: The path.
        forms: Names that are in every checkpoint of another form, besides ours.
    """
    try:
        with open_plain(path) as file:
            return any(_holds(file, parts) for parts in (PARTS, *forms))
    except OSError:
        return False


def _is_directory_of_ours(path: Path) -> bool:
    try:
        manifest = read_manifest(path)
        check_names(path, manifest)  # With a file of somebody else in it, it is not deleted.
    except CheckpointError:
        return False
    return all(_OF_SHARDS.fullmatch(name) for name in manifest.files)


def _holds(file: BinaryIO, parts: Sequence[str]) -> bool:
    """Return whether a file is an archive of torch.save in whose structure these names are.

    Nothing is unpickled: a name is looked for as pickle writes it.
    """
    file.seek(0)
    archive = open_archive(file)
    entries = archive.infolist() if archive is not None else []
    structure = [one for one in entries if os.path.basename(one.filename) == "data.pkl"]
    if archive is None or len(structure) != 1 or structure[0].file_size > MOST:
        return False
    if structure[0].compress_type != zipfile.ZIP_STORED:
        return False
    try:
        text = archive.read(structure[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError):
        return False  # It is damaged, or encrypted.
    return all(b"X" + len(p).to_bytes(4, "little") + p.encode() in text for p in parts)
