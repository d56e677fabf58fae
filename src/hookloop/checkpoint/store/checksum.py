"""The checksum of a file that torch.save has just written; see `hookloop.runs.checksum`."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

import torch

from hookloop.runs.checksum import (
    CHUNK,
    checksum_of_bytes,
    checksum_of_records,
    find_damage,
    open_archive,
)

__all__ = ["CHUNK", "file_checksum", "find_damage", "open_archive", "torch_writes_checksums"]


def file_checksum(file: BinaryIO) -> int:
    """Return the checksum of a file that torch.save has just written."""
    if torch_writes_checksums():
        return checksum_of_records(zipfile.ZipFile(file))
    return checksum_of_bytes(file)


def torch_writes_checksums() -> bool:
    """Return whether torch.save computes the CRC-32 values; a user may have turned that off."""
    # A torch without this option always computes them.
    options = getattr(torch.serialization, "get_crc32_options", None)
    return bool(options()) if options is not None else True
