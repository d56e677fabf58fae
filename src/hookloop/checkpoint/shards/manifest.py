"""The list of files of a checkpoint that is a directory, with size and checksum of each.

torch does not notice a flipped bit in such a directory, and its file ``.metadata`` is a pickle. So
every file is compared with this list before torch opens any.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hookloop.checkpoint.state.shape import Named, check_state, is_count, is_mapping
from hookloop.checkpoint.store.writing import WrittenFile
from hookloop.errors import CheckpointError
from hookloop.runs.checkpoint_names import MANIFEST
from hookloop.runs.checksum import CHUNK

LARGEST_MANIFEST = 1 << 26
"""Bytes of the file that are read at most."""

_SHAPE = {
    "body": {"files": Named({"size": is_count, "crc32": is_count}), "facts": is_mapping},
    "crc32": is_count,
}


@dataclass(frozen=True)
class Manifest:
    """What a directory holds.

    Attributes:
        files: Size and checksum of each file, by name.
        facts: What the run noted: the number of ranks, and how they shared the model.
        crc32: The checksum of the list itself.
    """

    files: Mapping[str, WrittenFile]
    facts: Mapping[str, object]
    crc32: int

    @property
    def size(self) -> int:
        """Bytes of all files that are listed."""
        return sum(file.size for file in self.files.values())


def encode_manifest(files: Mapping[str, WrittenFile], facts: Mapping[str, object]) -> bytes:
    """Return the text of a manifest: the same for the same contents."""
    listed = {name: {"size": one.size, "crc32": one.crc32} for name, one in files.items()}
    return _encode({"files": listed, "facts": dict(facts)})


def read_manifest(directory: Path) -> Manifest:
    """Read the list of a directory; reject one that has changed since it was written."""
    label = directory / MANIFEST
    try:
        with open_plain(label) as file:
            data = file.read(LARGEST_MANIFEST)
        content = json.loads(data)
        check_state(content, _SHAPE)
        # Compared as bytes: a flipped bit may also hide in a space, or in the facts.
        if _encode(content["body"]) != data:
            raise ValueError("its checksum is wrong")
        files = {name: WrittenFile(**one) for name, one in content["body"]["files"].items()}
        if wrong := [name for name in files if not _is_plain_name(name)]:
            raise ValueError(f"{wrong[0]!r} is not the name of a file in it")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"'{label}' is damaged: {error}.") from error
    return Manifest(files, content["body"]["facts"], zlib.crc32(data))


def verify(directory: str | Path, rank: int = 0, size: int = 1) -> Manifest:
    """Compare a directory with its manifest, every byte of every file.

    Args:
        directory: The checkpoint.
        rank: With several ranks, each reads its share of the files; all check their names.
        size: The number of ranks.

    Raises:
        CheckpointError: If a file is damaged, missing, too many, or leads elsewhere.
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise CheckpointError(f"There is no checkpoint '{directory}'.")
    manifest = read_manifest(directory)
    check_names(directory, manifest)
    # The largest first, so that the shares are about equal.
    names = sorted(manifest.files, key=lambda name: (-manifest.files[name].size, name))
    for name in names[rank::size]:
        if damage := _find_damage(directory / name, manifest.files[name]):
            raise CheckpointError(f"'{directory / name}' is damaged: {damage}.")
    return manifest


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading; one that is a link, a pipe or a device is an OSError."""
    # O_NONBLOCK: opening a pipe would otherwise wait for somebody to write to it.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a plain file")
    return os.fdopen(descriptor, "rb")


def _encode(body: Mapping[str, object]) -> bytes:
    text = json.dumps(body, sort_keys=True)
    whole = {"body": body, "crc32": zlib.crc32(text.encode())}
    return (json.dumps(whole, sort_keys=True, indent=1) + "\n").encode()


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..", MANIFEST) and not set(name) & set("/\\\0")


def check_names(directory: Path, manifest: Manifest) -> None:
    """Reject a directory that has other files than its list, or anything but plain files."""
    found = {entry.name: entry for entry in os.scandir(directory)}
    for name in (*manifest.files, MANIFEST):
        if name not in found:
            raise CheckpointError(f"'{directory / name}' is missing.")
    for name, entry in sorted(found.items()):
        if name not in manifest.files and name != MANIFEST:
            raise CheckpointError(f"'{directory / name}' does not belong to the checkpoint.")
        if not entry.is_file(follow_symlinks=False):
            raise CheckpointError(f"'{directory / name}' is not a plain file.")


def _find_damage(path: Path, listed: WrittenFile) -> str | None:
    try:
        with open_plain(path) as file:
            if (size := os.fstat(file.fileno()).st_size) != listed.size:
                return f"it has {size} bytes instead of {listed.size}"
            total = 0
            while chunk := file.read(CHUNK):
                total = zlib.crc32(chunk, total)
    except OSError as error:
        return str(error)
    return None if total == listed.crc32 else "its checksum is wrong"
