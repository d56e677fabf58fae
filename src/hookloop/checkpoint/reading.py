"""Reading a checkpoint file: checked for damage, and without running code from it."""

from __future__ import annotations

import pickle
import re
import zipfile
import zlib
from typing import BinaryIO

import torch

from hookloop.checkpoint.index import Saved
from hookloop.checkpoint.storage import Storage
from hookloop.errors import CheckpointError

CHUNK = 1 << 22


def read(storage: Storage, name: str, listed: Saved | None) -> dict[str, object]:
    """Read a checkpoint; only tensors and plain containers are accepted, so no code can run.

    Args:
        storage: Where it is.
        name: The file.
        listed: What the index says of it, if it does.

    Raises:
        CheckpointError: If it is missing, damaged, or no checkpoint at all.
    """
    label = f"{storage.url}/{name}"
    try:
        if name not in storage.names():
            raise CheckpointError(f"'{label}' is missing.")
        _verify(storage, name, listed)
        with storage.open(name) as file:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except Exception as error:  # torch raises nearly anything over a damaged file.
        raise CheckpointError(f"'{label}' cannot be loaded: {_reason(error)}") from error
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"'{label}' holds a {type(checkpoint).__name__}, not a checkpoint.")
    return checkpoint


def _verify(storage: Storage, name: str, listed: Saved | None) -> None:
    """Refuse a file whose bytes are not those that were written."""
    label, size = f"{storage.url}/{name}", storage.size(name)
    if size == 0:
        raise CheckpointError(f"'{label}' is empty.")
    if listed is None:
        _verify_archive(storage, name)
        return
    if size != listed.size:
        raise CheckpointError(
            f"'{label}' is damaged: it has {size} bytes instead of {listed.size}."
        )
    checksum = 0
    with storage.open(name) as file:
        while chunk := file.read(CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    if checksum != listed.crc32:
        raise CheckpointError(f"'{label}' is damaged: its checksum is wrong.")


def _verify_archive(storage: Storage, name: str) -> None:
    """Check the sums that torch.save puts into the file, which torch.load does not look at."""
    with storage.open(name) as file:
        if not _is_archive(file):
            return
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()
    if damaged is not None:
        raise CheckpointError(f"'{storage.url}/{name}' is damaged in its part '{damaged}'.")


def _is_archive(file: BinaryIO) -> bool:
    start = file.read(4)
    file.seek(0)
    return start == b"PK\x03\x04"


def _reason(error: Exception) -> str:
    """Say what is wrong; torch's own words advise to load it all the same, and run its code."""
    text = str(error).strip()
    if isinstance(error, pickle.UnpicklingError):
        foreign = re.search(r"GLOBAL ([\w.]+)", text)
        what = f" ({foreign[1]})" if foreign else ""
        return f"it is damaged, or holds more than tensors and plain containers{what}."
    return text.splitlines()[0] if text else type(error).__name__
