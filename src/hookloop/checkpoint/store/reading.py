"""Read a checkpoint file: check it for damage, and run no code from it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import torch

from hookloop.checkpoint.shards.reading import Shards
from hookloop.checkpoint.store.index import Saved
from hookloop.checkpoint.store.limits import check_archive, check_contents
from hookloop.checkpoint.store.storage import LocalStorage, Storage, is_checkpoint_directory
from hookloop.errors import CheckpointError
from hookloop.runs.checksum import find_damage


def read_checkpoint(
    storage: Storage, name: str, listed: Saved | None, *, whole: bool = True
) -> dict[str, object]:
    """Read a checkpoint; only tensors and plain containers are accepted, so no code can run.

    Args:
        storage: Where the file is.
        name: Its name.
        listed: Its entry in the index, if it has one.
        whole: If it is a directory, whether to read its tensors; otherwise only verify them.

    Raises:
        CheckpointError: If it is missing, damaged, or not a checkpoint at all.
    """
    label = f"{storage.url}/{name}"
    try:
        if name not in storage.names():
            raise CheckpointError(f"'{label}' is missing.")
        if isinstance(storage, LocalStorage) and is_checkpoint_directory(storage.directory / name):
            return _read_directory(storage.directory / name, listed, whole=whole)
        # Before torch opens it: a crafted archive could fill the memory while it is unpacked.
        _verify(storage, name, listed)
        with storage.open(name) as file:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
        check_contents(checkpoint, storage.size(name))
    except CheckpointError:
        raise
    except Exception as error:  # torch raises errors of nearly any type for a damaged file.
        raise CheckpointError(f"'{label}' cannot be loaded: {_reason(error)}") from error
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"'{label}' holds a {type(checkpoint).__name__}, not a checkpoint.")
    return checkpoint


def _read_directory(path: Path, listed: Saved | None, *, whole: bool) -> dict[str, object]:
    shards = Shards.open(path)
    manifest = shards.manifest
    if listed is not None and (listed.size, listed.crc32) != (manifest.size, manifest.crc32):
        raise CheckpointError(f"'{path}' is damaged: it is not the directory that was saved.")
    return shards.read_all() if whole else shards.state


def _verify(storage: Storage, name: str, listed: Saved | None) -> None:
    """Reject a file whose bytes are not those that were written."""
    label, size = f"{storage.url}/{name}", storage.size(name)
    if size == 0:
        raise CheckpointError(f"'{label}' is empty.")
    if listed is not None and size != listed.size:
        raise CheckpointError(
            f"'{label}' is damaged: it has {size} bytes instead of {listed.size}."
        )
    with storage.open(name) as file:
        check_archive(file, size)
        if damage := find_damage(file, listed.crc32 if listed is not None else None):
            raise CheckpointError(f"'{label}' is damaged: {damage}.")


def _reason(error: Exception) -> str:
    """Return what is wrong with a file, in a line."""
    text = str(error).strip()
    # The message of torch advises to load the file with weights_only=False, which runs its code.
    if isinstance(error, pickle.UnpicklingError):
        foreign = re.search(r"GLOBAL ([\w.]+)", text)
        what = f" ({foreign[1]})" if foreign else ""
        return f"it is damaged, or holds more than tensors and plain containers{what}."
    return text.splitlines()[0] if text else type(error).__name__
